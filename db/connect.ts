import { setImmediate } from 'node:timers/promises';
import { type CompiledQuery, Kysely, PostgresDialect, type RawBuilder } from 'kysely';
import pg from 'pg';
import { openEmbedded } from './embedded.ts';
import { keepUp } from './embedded_upkeep.ts';
import { graceMs, type OnStatement, openPool, prepareConnection, preparing } from './pool.ts';
import type { Tables } from './tables.ts';

/** Where the data is: a PostgreSQL server, or a folder that an embedded PostgreSQL keeps (`memory://` keeps nothing). */
export type DatabaseSettings =
  | {
      readonly connection: string;
      readonly maxPoolSize: number;
      /** How long to wait for a connection, in milliseconds. */
      readonly connectTimeoutMs?: number;
      /** The age at which a connection is replaced; without it, none. */
      readonly maxLifetimeSeconds?: number;
      /** How long a statement may take on `Database.kysely`, in milliseconds; without it, and at 0, as long as it wants. */
      readonly statementTimeoutMs?: number;
      readonly onStatement?: OnStatement;
    }
  | {
      readonly embeddedPath: string;
      /** A dump of a data folder (PGlite's `dumpDataDir`) that a new database starts from. */
      readonly template?: Blob;
      readonly onStatement?: OnStatement;
      /** Is told what goes wrong in the background. */
      readonly warn?: (line: string) => void;
    };

type TransactionOptions = { readonly lockTimeoutMs?: number };

/** The rows of some statements, as each of them declares its own. */
export type RowsOf<Statements extends readonly RawBuilder<unknown>[]> = {
  readonly [Place in keyof Statements]: Statements[Place] extends RawBuilder<infer Row> ? readonly Row[] : never;
};

/** A database that is open, whichever engine it has. */
export type Database = {
  readonly kysely: Kysely<Tables>;
  /** The same database for what may take long, such as migrations: a connection of its own, on which no time-out holds. */
  readonly patient: Kysely<Tables>;
  readonly engine: 'postgresql' | 'embedded';
  /**
   * Sends the statements as one transaction without waiting between them: one round trip on PostgreSQL. Each statement sees
   * what was committed before it began, and what the ones before it did.
   *
   * @param options.lockTimeoutMs how long it may wait for each lock; without it, as long as a statement may take
   * @returns the rows of each statement
   * @throws the first error, `lockNotAvailable` where a lock was not given in time; then nothing was changed.
   */
  transaction<const Statements extends readonly RawBuilder<unknown>[]>(
    statements: Statements,
    options?: TransactionOptions,
  ): Promise<RowsOf<Statements>>;
  /**
   * Resolves when what waits at the sockets was read, for those who collect callers for one statement. The embedded engine
   * keeps the process busy while it works, so that they would never find a second caller; on PostgreSQL it resolves at once.
   */
  turn(): Promise<void>;
  /** How many connections are open, how many of them idle, and how many wait for one. */
  connections(): { readonly open: number; readonly idle: number; readonly waiting: number };
  close(): Promise<void>;
};

/**
 * Opens the database. Both engines are one Kysely instance over node-postgres and speak the same SQL; the embedded one has
 * a single connection.
 *
 * @throws Error where the embedded folder is in use by another process, with the remedy.
 */
export async function openDatabase(settings: DatabaseSettings): Promise<Database> {
  if ('connection' in settings) {
    const { statementTimeoutMs = 0, onStatement } = settings;
    const common = {
      connectionString: settings.connection,
      connectionTimeoutMillis: settings.connectTimeoutMs ?? 10_000,
      maxLifetimeSeconds: settings.maxLifetimeSeconds ?? 0,
      application_name: 'placement',
      pipeline: true,
      types: utcTypes,
      // A server that vanishes without a word is noticed also where no time-out holds: every reader waits for a load.
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    };
    const pool = openPool({
      ...common,
      max: settings.maxPoolSize,
      // A server that cannot be heard any more does not end a statement: then the connection is given up.
      ...(statementTimeoutMs === 0 ? {} : { query_timeout: statementTimeoutMs + graceMs }),
    });
    pool.on('connect', (client) => prepareConnection(client, statementTimeoutMs));
    const patientPool = openPool({ ...common, max: 1 });
    const patient = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: patientPool }) });
    return database(pool, { engine: 'postgresql', patient, onStatement, closeEngine: () => patientPool.end() });
  }
  const embedded = await openEmbedded(settings);
  const pool = new pg.Pool({ ...embedded.poolConfig, types: utcTypes });
  pool.on('connect', (client) => prepareConnection(client, 0));
  const opened = database(pool, {
    engine: 'embedded',
    onStatement: settings.onStatement,
    closeEngine: embedded.close,
  });
  const stopUpkeep = keepUp(opened.kysely, (error) => settings.warn?.(`A table could not be vacuumed: ${error}`));
  return {
    ...opened,
    close: async () => {
      await stopUpkeep();
      await opened.close();
    },
  };
}

function database(
  pool: pg.Pool,
  {
    engine,
    patient,
    onStatement,
    closeEngine,
  }: Pick<Database, 'engine'> & {
    readonly patient?: Kysely<Tables>;
    readonly onStatement: OnStatement | undefined;
    readonly closeEngine: () => Promise<void>;
  },
): Database {
  const prepared = preparing(pool, onStatement);
  const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: prepared }) });
  return {
    kysely,
    patient: patient ?? kysely,
    engine,
    transaction: async <const Statements extends readonly RawBuilder<unknown>[]>(
      statements: Statements,
      options?: TransactionOptions,
    ) => {
      const queries = statements.map((statement) => statement.compile(kysely));
      const rows: readonly (readonly unknown[])[] = await transaction(prepared, engine, queries, options);
      return rows as RowsOf<Statements>; // the same number, in the same order
    },
    turn: engine === 'embedded' ? eventLoopTurn : async () => {},
    connections: () => ({ open: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    close: async () => {
      await pool.end();
      await closeEngine();
    },
  };
}

/** The first of the two may come in the same turn, before the sockets are looked at. */
async function eventLoopTurn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

async function transaction(
  pool: Pick<pg.Pool, 'connect'>,
  engine: Database['engine'],
  queries: readonly CompiledQuery[],
  { lockTimeoutMs }: TransactionOptions = {},
) {
  const client = await pool.connect();
  let broken: unknown;
  // A single statement is a transaction already.
  const isSingle = queries.length === 1 && lockTimeoutMs === undefined;
  const begin = lockTimeoutMs === undefined ? 'begin' : `begin; set local lock_timeout = ${lockTimeoutMs}`;
  try {
    const texts = isSingle ? queries : [{ sql: begin, parameters: [] }, ...queries, { sql: 'commit', parameters: [] }];
    const sent: Promise<pg.QueryResult>[] = [];
    // All are sent by one write, instead of one each: a tenth of the CPU time of creating a provider.
    const stream = engine === 'postgresql' ? client.connection.stream : undefined;
    stream?.cork();
    try {
      for (const { sql, parameters } of texts) {
        sent.push(client.query(sql, [...parameters]));
        // The embedded engine takes one query at a time; a failed one is found below, behind the rolled back commit.
        if (engine === 'embedded') await sent.at(-1)?.catch(() => {});
      }
    } finally {
      stream?.uncork();
    }
    const settled = await Promise.allSettled(sent);
    const failed = settled.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const rows = (await Promise.all(sent)).map((result) => result.rows as readonly unknown[]);
    return isSingle ? rows : rows.slice(1, -1);
  } catch (error) {
    // A COMMIT behind a failed statement has rolled back already; a broken connection must not be used again.
    broken = isDatabaseError(error) ? undefined : error;
    throw error;
  } finally {
    client.release(broken instanceof Error ? broken : undefined);
  }
}

/**
 * Whether the server itself refused a statement (it has an SQLSTATE), in contrast to a connection that broke. The embedded
 * engine throws a class of its own, so the shape decides.
 */
export const isDatabaseError = (
  error: unknown,
): error is Error & { readonly code: string; readonly constraint?: string } =>
  error instanceof Error && 'severity' in error && 'code' in error && typeof error.code === 'string';

/** timestamp without time zone: upstream stores UTC; node-postgres would read it as local time. */
const timestampOid = 1114;
const utcTypes = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === timestampOid && format !== 'binary'
      ? (text: string) => new Date(`${text.replace(' ', 'T')}Z`)
      : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig;
