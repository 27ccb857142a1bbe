import { setImmediate } from 'node:timers/promises';
import type { CompiledQuery, Kysely, RawBuilder } from 'kysely';
import pg from 'pg';
import type { Tables } from '../tables.ts';
import { isConfirming, watchCommits } from './commit_watch.ts';
import {
  begin,
  type Connect,
  lendingFrom,
  lendingWithoutLimits,
  type OnStatement,
  withoutLimits,
} from './connection.ts';
import { kyselyOn } from './driver.ts';
import type { EmbeddedSettings } from './embedded.ts';
import { CommitsUnconfirmed, isConnectionRefused, isDatabaseError, isLockRefused } from './failures.ts';
import type { TakeClient } from './hosts.ts';
import { migrationLockOn, type WithMigrationLock } from './migration_lock.ts';
import {
  type Breaks,
  type BreakWatch,
  graceMs,
  type OpenPool,
  oneAfterTheOther,
  poolsOf,
  prepareConnection,
  prepareWithoutLimits,
  sparingRefusedConnections,
  watchForBreaks,
} from './pool.ts';
import { briefWait, type LockWait, openSlowLane, type SlowLane, slowConnections } from './slow_lane.ts';
import { withFreeIds } from './taken_ids.ts';

/**
 * Where the data is: on a PostgreSQL server, or in the folder of an embedded PostgreSQL (`memory://` stores nothing).
 */
export type DatabaseSettings =
  | {
      readonly connection: string;
      readonly maxPoolSize: number;
      /** How long to wait for a connection, in milliseconds. */
      readonly connectTimeoutMs?: number;
      /** The age at which a connection is replaced. Without it, connections are never replaced for their age. */
      readonly maxLifetimeSeconds?: number;
      /**
       * The time limit of a statement on `Database.kysely`, in milliseconds. Without it, or at 0, there is no limit.
       */
      readonly statementTimeoutMs?: number;
      /**
       * Whether the server parses and plans a statement once per connection; the default. A pooler in transaction mode
       * may send the next statement to another connection of the server, which does not know it.
       */
      readonly preparedStatements?: boolean;
      readonly onStatement?: OnStatement | undefined;
      /** Called when the server refuses a further connection, and requests go on with those that are open. */
      readonly onRefused?: ((error: unknown) => void) | undefined;
    }
  | (EmbeddedSettings & {
      readonly onStatement?: OnStatement | undefined;
      /** Called with a line for the log when background work fails. */
      readonly warn?: ((line: string) => void) | undefined;
    });

/** The rows of several statements, in their order, each with the row type that its statement declares. */
export type RowsOf<Statements extends readonly RawBuilder<unknown>[]> = {
  readonly [Index in keyof Statements]: Statements[Index] extends RawBuilder<infer Row> ? readonly Row[] : never;
};

/** An open database of either engine. */
export type Database = {
  readonly kysely: Kysely<Tables>;
  /** The same database for work that may take long, such as migrations: a separate connection without time limits. */
  readonly unlimited: Kysely<Tables>;
  /** As `unlimited`, on one of the connections of requests. */
  readonly unlimitedOfRequests: Kysely<Tables>;
  readonly withMigrationLock: WithMigrationLock;
  readonly engine: 'postgresql' | 'embedded';
  /**
   * Sends the statements as one transaction without waiting between them: one round trip on PostgreSQL. Each statement
   * sees what was committed before it began, and what the earlier statements of the transaction wrote.
   *
   * Where a new row gets an id that is taken, the transaction is repeated with other ids.
   *
   * @param wait how long the transaction may wait for each lock, and on which connections. Without it, the time limit
   *   of a statement applies.
   * @returns the rows of each statement
   * @throws the first error; `lockNotAvailable` if a lock was not granted in time; `NoIdLeft` if a table has no id
   *   for a new row. Then nothing was changed.
   */
  transaction<const Statements extends readonly RawBuilder<unknown>[]>(
    statements: Statements,
    wait?: Partial<LockWait>,
  ): Promise<RowsOf<Statements>>;
  /**
   * As `transaction`, for a write that may find a lock held by another program. The write waits for that lock in the
   * slow lane, on a connection that no other request needs, for as long as a statement may take.
   */
  write<const Statements extends readonly RawBuilder<unknown>[]>(statements: Statements): Promise<RowsOf<Statements>>;
  /** Where transactions wait for locks that other programs hold. Its connections are opened on first use. */
  readonly slowLane: SlowLane;
  /** The time limit of a statement, in milliseconds; 0 means no limit. */
  readonly statementTimeoutMs: number;
  /**
   * Resolves when the requests that wait at the sockets were read, so that a batch can collect several of them for one
   * statement. The embedded engine keeps the process busy while it works: without this call a batch would never find a
   * second request. On PostgreSQL the answer to a statement is often read before requests that came earlier.
   */
  pollSockets(): Promise<void>;
  /** Which connections broke. */
  readonly breaks: Breaks;
  /** How many connections are open, how many of these are idle, and how many transactions wait for one. */
  connections(): { readonly open: number; readonly idle: number; readonly waiting: number };
  close(): Promise<void>;
};

/**
 * Opens the database. Both engines are one Kysely instance over node-postgres and speak the same SQL; the embedded one
 * has a single connection.
 *
 * @throws Error with the remedy if another process uses the embedded folder.
 */
export async function openDatabase(settings: DatabaseSettings): Promise<Database> {
  if ('connection' in settings) {
    const { statementTimeoutMs = 0, preparedStatements = true, onStatement, onRefused } = settings;
    const common = {
      connectionTimeoutMillis: settings.connectTimeoutMs ?? 10_000,
      maxLifetimeSeconds: settings.maxLifetimeSeconds ?? 0,
      application_name: 'placement',
      pipeline: true,
      types: utcTypes,
      // TCP keep-alive detects a server that died without closing its connections, also on connections without a time
      // limit. Otherwise a load of the fleet, and every request that waits for it, would wait for ever.
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    };
    const breaks = watchForBreaks();
    const openAny = poolsOf(settings.connection);
    const openPool = (config: Parameters<typeof openAny>[0], hasOther: boolean): OpenPool => {
      const opened = openAny(config);
      opened.pool.on('connect', breaks.watch);
      return { pool: opened.pool, take: sparingRefusedConnections(opened, { hasOther, refused: onRefused }) };
    };
    const limited = (max: number, { hasOther = false } = {}): OpenPool => {
      // A server that does not answer any more does not cancel a statement either. The client closes the connection
      // then.
      const timeout = statementTimeoutMs === 0 ? {} : { query_timeout: statementTimeoutMs + graceMs };
      const opened = openPool({ ...common, max, ...timeout }, hasOther);
      opened.pool.on('connect', (client) => prepareConnection(client, statementTimeoutMs));
      return opened;
    };
    const unlimitedPool = (): OpenPool => {
      const opened = openPool({ ...common, max: 1 }, true);
      opened.pool.on('connect', prepareWithoutLimits);
      return opened;
    };
    const [longPool, lockPool] = [unlimitedPool(), unlimitedPool()];
    return database(limited(settings.maxPoolSize), {
      engine: 'postgresql',
      slowPool: limited(slowConnections, { hasOther: true }),
      lendUnlimited: lendingWithoutLimits(longPool.take),
      breaks,
      preparedStatements,
      statementTimeoutMs,
      onStatement,
      withMigrationLock: migrationLockOn(lendingWithoutLimits(lockPool.take)),
      closeEngine: async () => {
        await Promise.all([longPool.pool.end(), lockPool.pool.end()]);
      },
    });
  }
  // Imported only here: a process on a PostgreSQL server needs neither PGlite nor the memory for its code.
  const { keepUp, openEmbedded } = await import('./embedded.ts');
  const embedded = await openEmbedded(settings);
  const pool = new pg.Pool({ ...embedded.poolConfig(), types: utcTypes });
  pool.on('connect', (client) => prepareConnection(client, 0));
  const opened = database(
    { pool, take: yieldingToEventLoop(() => pool.connect()) },
    {
      engine: 'embedded',
      breaks: watchForBreaks(), // its only connection is to this process
      preparedStatements: true,
      statementTimeoutMs: 0,
      onStatement: settings.onStatement,
      // No other process can open the database.
      withMigrationLock: (work) => work(),
      closeEngine: embedded.close,
    },
  );
  const stopUpkeep = keepUp(opened.kysely, (error) =>
    settings.warn?.(`The embedded database could not be vacuumed, or its log shortened: ${error}`),
  );
  return {
    ...opened,
    close: async () => {
      await stopUpkeep();
      await opened.close();
    },
  };
}

/** How long the embedded database may work, statement after statement, before the event loop continues, in milliseconds. */
const yieldAfterMs = 5;

/**
 * The embedded database answers in the same iteration of the event loop: a loop of statements would keep the requests at
 * the sockets waiting, and the timers, until its end.
 */
function yieldingToEventLoop(take: TakeClient): TakeClient {
  let sinceMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - sinceMs > yieldAfterMs) {
      await setImmediate();
      sinceMs = performance.now();
    }
    return take();
  };
}

/** Whether a pool has neither an idle connection nor room for another one. */
const isInUse = ({ idleCount, totalCount, options }: pg.Pool): boolean => idleCount === 0 && totalCount >= options.max;

/** After a lock was refused on a connection of the requests, how long the slow lane uses none of these connections, in milliseconds. */
const pauseOnSharedMs = 200;

function database(
  main: OpenPool,
  {
    engine,
    slowPool,
    lendUnlimited,
    breaks,
    preparedStatements,
    statementTimeoutMs,
    onStatement,
    withMigrationLock,
    closeEngine,
  }: Pick<Database, 'engine' | 'statementTimeoutMs' | 'withMigrationLock'> & {
    readonly slowPool?: OpenPool;
    /** Lends connections without time limits. If the server refuses another one, `database` lends a connection of the requests. */
    readonly lendUnlimited?: Connect;
    readonly breaks: BreakWatch;
    readonly preparedStatements: boolean;
    readonly onStatement: OnStatement | undefined;
    readonly closeEngine: () => Promise<void>;
  },
): Database {
  // While commits are unconfirmed, writes may occupy all connections of the requests: then a connection of the slow lane is used.
  const freeKysely = (): Kysely<Tables> => (slowPool !== undefined && isInUse(main.pool) ? slowKysely : kysely);
  const commits =
    engine === 'embedded'
      ? undefined
      : watchCommits({ isConfirming: (ms) => isConfirming(freeKysely(), ms), statementTimeoutMs, graceMs });
  const sending = { preparedStatements, onStatement, breaks, commits };
  const lend = lendingFrom(main.take, sending);
  const slow = slowPool === undefined ? lend : lendingFrom(slowPool.take, sending);
  const pools = [main, ...(slowPool === undefined ? [] : [slowPool])].map(({ pool }) => pool);
  const sumOf = (count: (pool: pg.Pool) => number): number => pools.reduce((sum, each) => sum + count(each), 0);
  const kysely = kyselyOn(lend);
  const slowKysely = kyselyOn(slow);
  const lendOfRequests = async () => withoutLimits(await lend(), statementTimeoutMs);
  const unlimited =
    lendUnlimited === undefined
      ? kysely
      : kyselyOn(() =>
          lendUnlimited().catch((error: unknown) => {
            if (isConnectionRefused(error)) return lendOfRequests();
            throw error;
          }),
        );
  const slowLane = openSlowLane(() => commits?.isUnconfirmed() ?? false);
  const transact: Database['transaction'] = async (statements, wait) => {
    const queries = statements.map((statement) => statement.compile(kysely));
    const clearance = commits?.clearance(queries.map(({ sql }) => sql));
    if (clearance !== undefined) await clearance;
    const rows: readonly (readonly unknown[])[] = await withFreeIds(kysely, () =>
      wait?.isSlow
        ? transactSlowly(queries, wait.lockTimeoutMs)
        : transaction(lend, engine, queries, wait?.lockTimeoutMs),
    );
    return rows as RowsOf<typeof statements>; // one list of rows for each statement, in the same order
  };
  /** Where a full server gives the slow lane no connection, a transaction waits briefly for its locks on a connection of the requests. */
  const transactSlowly = async (queries: readonly CompiledQuery[], lockTimeoutMs: number | undefined) => {
    try {
      return await transaction(slow, engine, queries, lockTimeoutMs);
    } catch (error) {
      if (!isConnectionRefused(error)) throw error;
      const briefMs = Math.min(lockTimeoutMs ?? briefWait.lockTimeoutMs, briefWait.lockTimeoutMs);
      return onSharedConnections(() => transaction(lend, engine, queries, briefMs));
    }
  };
  const onSharedConnections = oneAfterTheOther(pauseOnSharedMs);
  return {
    kysely,
    unlimited,
    unlimitedOfRequests: kyselyOn(lendOfRequests),
    engine,
    transaction: transact,
    write: async (statements) => {
      const endsAtMs = statementTimeoutMs === 0 ? Number.POSITIVE_INFINITY : performance.now() + statementTimeoutMs;
      try {
        return await transact(statements, briefWait);
      } catch (error) {
        if (!isLockRefused(error)) throw error;
        const patience = { holdsOthers: true, endsAtMs, refusal: error };
        return slowLane
          .attempt((wait) => transact(statements, wait), patience)
          .catch((last: unknown) => {
            throw isLockRefused(last) && commits?.isUnconfirmed() ? new CommitsUnconfirmed() : last;
          });
      }
    },
    pollSockets,
    slowLane,
    statementTimeoutMs,
    withMigrationLock,
    breaks,
    connections: () => ({
      open: sumOf(({ totalCount }) => totalCount),
      idle: sumOf(({ idleCount }) => idleCount),
      waiting: sumOf(({ waitingCount }) => waitingCount),
    }),
    close: async () => {
      commits?.close();
      await Promise.all(pools.map((each) => each.end()));
      await closeEngine();
    },
  };
}

/**
 * Twice, because the first callback may run in the same iteration of the event loop, before the sockets are polled. Where that iteration
 * is long, since long answers are made, what waits at the sockets is not waited for.
 */
async function pollSockets(): Promise<void> {
  const beganMs = performance.now();
  await setImmediate();
  if (performance.now() - beganMs < longIterationMs) await setImmediate();
}

const longIterationMs = 0.5;

async function transaction(
  connect: Connect,
  engine: Database['engine'],
  queries: readonly CompiledQuery[],
  lockTimeoutMs: number | undefined,
) {
  const connection = await connect();
  let broken: unknown;
  // No other program can hold a lock in the embedded engine.
  const takesEachLock = lockTimeoutMs === undefined || engine === 'embedded';
  // A single statement is a transaction already.
  const isSingle = queries.length === 1 && takesEachLock;
  const beginning = takesEachLock ? begin : `${begin}; set local lock_timeout = ${lockTimeoutMs}`;
  try {
    const texts = isSingle
      ? queries
      : [{ sql: beginning, parameters: [] }, ...queries, { sql: 'commit', parameters: [] }];
    const sent: Promise<pg.QueryResult>[] = [];
    // All statements are sent by one write to the socket instead of one write each. This saves a tenth of the CPU time
    // of creating a provider.
    const isCorked = engine === 'postgresql'; // the embedded engine has no socket
    if (isCorked) connection.cork();
    try {
      for (const { sql, parameters } of texts) {
        sent.push(connection.send(sql, parameters));
        // The embedded engine takes one query at a time. A failed query is found below, after the commit, which rolls
        // back.
        if (engine === 'embedded') await sent.at(-1)?.catch(() => {});
      }
    } finally {
      if (isCorked) connection.uncork();
    }
    await Promise.allSettled(sent);
    const rows = (await Promise.all(sent)).map((result) => result.rows as readonly unknown[]); // throws the first error
    return isSingle ? rows : rows.slice(1, -1);
  } catch (error) {
    // A COMMIT after a failed statement has rolled back already. A broken connection must not be used again.
    broken = isDatabaseError(error) || error instanceof CommitsUnconfirmed ? undefined : error;
    throw error;
  } finally {
    connection.release(broken instanceof Error ? broken : undefined);
  }
}

/** `timestamp without time zone`. Upstream stores UTC in it; node-postgres would read it as local time. */
const timestampOid = 1114;
/** `timestamp with time zone`. Of infinite times node-postgres would make numbers; an invalid `Date` is what they are in the other type as well. */
const timestamptzOid = 1184;
const utcTypes = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === timestampOid && format !== 'binary') return (text: string) => new Date(`${text.replace(' ', 'T')}Z`);
    const parse = pg.types.getTypeParser(oid, format as 'text');
    return oid === timestamptzOid && format !== 'binary' ? (text: string) => new Date(parse(text)) : parse;
  },
} as pg.CustomTypesConfig;
