import type { DatabaseSettings } from '../../db/engine/connect.ts';
import type { EmbeddedOrigin } from '../../db/engine/embedded.ts';
import type { Config } from '../../src/config/config.ts';
import { borrowEmbedded } from './kept_embedded.ts';
import { createDatabase, startPostgresql } from './postgresql.ts';
import { askForPostgresql } from './postgresql_on_demand.ts';
import { postgresqlTemplate } from './templates.ts';

export type Engine = 'embedded' | 'postgresql';

/** Both engines that the service runs on: `for (const engine of engines) test(...)`. */
export const engines: readonly Engine[] = ['embedded', 'postgresql'];

/**
 * For tests in which the database makes no difference. A service on a fresh database takes 0.1 s of CPU time; on the embedded engine
 * it takes 0.4 s, and the first one in a process 1.1 s.
 */
export const anyEngine: Engine = 'postgresql';

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
  const server = await postgresqlServer();
  const { url, drop } = await createDatabase(server, await postgresqlTemplate(server));
  return { settings: { connection: url, maxPoolSize: 10 }, config: { connection: url }, drop };
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
