import pg from 'pg';
import type { DatabaseSettings } from '../../db/engine/connect.ts';
import type { Embedded, EmbeddedOrigin } from '../../db/engine/embedded.ts';
import type { Config } from '../../src/config/config.ts';
import { keptDatabases } from './kept_databases.ts';
import { createDatabase, type FreshDatabase, startPostgresql } from './postgresql.ts';
import { askForPostgresql } from './postgresql_on_demand.ts';
import { embeddedTemplate, postgresqlTemplate } from './templates.ts';

export type Engine = 'embedded' | 'postgresql';

/**
 * Both engines that the service runs on: `for (const engine of engines) test(...)`, for what they may do differently. That is how
 * transactions, locks and connections run at the same time, how a database begins, ends, grows and is repaired, and how numbers
 * become texts. Each statement is to be run on each engine by some test, which the runner of all tests checks.
 */
export const engines: readonly Engine[] = ['embedded', 'postgresql'];

/**
 * For tests in which the database makes no difference: most of them. A service on a fresh database takes 0.1 s of CPU time; on the embedded
 * engine it takes 0.4 s, and the first one in a process 1.1 s.
 */
export const anyEngine: Engine = 'postgresql';

/**
 * How many random cases run on an engine. A statement takes six times as long on the embedded one, and what finds a mistake on
 * PostgreSQL is needed there only to see that the statements do the same.
 */
export const runsOn = (engine: Engine, runs: number): number => (engine === 'embedded' ? Math.ceil(runs / 4) : runs);

/**
 * The URL of the PostgreSQL server of this test run, which is started when a test file first asks for it. A file that runs
 * without test/run.ts starts a server of its own.
 */
export function postgresqlServer(): Promise<string> {
  const shared = process.env.TEST_POSTGRESQL_ON_DEMAND;
  serverUrl ??= shared === undefined ? startPostgresql().then(({ url }) => url) : askForPostgresql(shared);
  return serverUrl;
}

let serverUrl: Promise<string> | undefined;

/** A database with the schema and the standard names that belongs to one test. */
export type TestDatabase = {
  /**
   * For `openDatabase`. On PostgreSQL it may be opened many times and is one database; on the embedded engine every
   * `openDatabase` gets a database of its own, in memory.
   */
  readonly settings: DatabaseSettings;
  /** The same for the service's configuration. */
  readonly config: Partial<Config['placementDatabase']>;
  readonly embedded?: EmbeddedOrigin;
  drop(): Promise<void>;
};

const keptEmbedded = keptDatabases<Embedded>({
  make: async () => {
    const { openEmbedded } = await import('../../db/engine/embedded.ts'); // a test on PostgreSQL does without PGlite
    return openEmbedded({ embeddedPath: 'memory://', template: await embeddedTemplate() });
  },
  withClient: async ({ poolConfig }, use) => {
    const pool = new pg.Pool(poolConfig());
    const client = await pool.connect();
    try {
      return await use(client);
    } finally {
      client.release();
      await pool.end();
    }
  },
  remove: (database) => database.close(),
});

const keptPostgresql = keptDatabases<FreshDatabase>({
  make: async () => {
    const server = await postgresqlServer();
    return createDatabase(server, await postgresqlTemplate(server));
  },
  withClient: async ({ url }, use) => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {}); // a statement, or connect, throws it
    await client.connect();
    try {
      return await use(client);
    } finally {
      await client.end();
    }
  },
  remove: ({ drop }) => drop(),
});

/** An embedded database in memory with the schema and the standard names. The next test may get it again after it is closed. */
async function borrowEmbedded(): Promise<Embedded> {
  const database = await keptEmbedded.borrow();
  return { poolConfig: database.poolConfig, close: () => keptEmbedded.giveBack(database) };
}

export async function freshDatabase(engine: Engine): Promise<TestDatabase> {
  if (engine === 'embedded') {
    const embedded = { inMemory: borrowEmbedded };
    return {
      settings: { embeddedPath: 'memory://', ...embedded },
      config: { connection: undefined, embeddedPath: 'memory://' },
      embedded,
      drop: async () => {},
    };
  }
  const database = await keptPostgresql.borrow();
  const { url } = database;
  return {
    settings: { connection: url, maxPoolSize: 10 },
    config: { connection: url },
    drop: () => keptPostgresql.giveBack(database),
  };
}

/** Calls back with the URL of an empty database on PostgreSQL, and drops it in the end. */
export async function withEmptyDatabase<T>(use: (url: string) => Promise<T>): Promise<T> {
  const { url, drop } = await createDatabase(await postgresqlServer());
  try {
    return await use(url);
  } finally {
    await drop();
  }
}

/** Calls back with a fresh database, and drops it in the end. */
export async function withFreshDatabase<T>(engine: Engine, use: (database: TestDatabase) => Promise<T>): Promise<T> {
  const database = await freshDatabase(engine);
  try {
    return await use(database);
  } finally {
    await database.drop();
  }
}
