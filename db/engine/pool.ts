import pg from 'pg';
import { isConnectionRefused } from './failures.ts';
import { hostsOf } from './host_list.ts';
import { clientsBy, newClient, newHostSearch, openHostsPool, type TakeClient } from './hosts.ts';
import { tellsCrashes } from './server_state.ts';

/** A pool, and how a connection of it is taken. */
export type OpenPool = { readonly pool: pg.Pool; readonly take: TakeClient };

/**
 * How the pools of a database are opened. A URL with one server, without a wanted kind or a `connect_timeout`, and with or without TLS for
 * certain gets pools of node-postgres itself.
 */
export function poolsOf(url: string): (config: PoolConfig) => OpenPool {
  const list = hostsOf(url);
  const isPlain = list.hosts.length === 1 && list.target === 'any' && !list.isTlsOptional;
  if (isPlain && list.connectTimeoutMs === undefined) {
    return (config) =>
      plainPool(replacingBroken(new pg.Pool({ ...config, Client: clientsBy(newClient), connectionString: url })));
  }
  const search = newHostSearch(list);
  return (config) => {
    const { pool, take } = openHostsPool(config, url, list, search);
    return { pool: replacingBroken(pool), take };
  };
}

/** A pool of node-postgres as it is. */
const plainPool = (pool: pg.Pool): OpenPool => ({ pool, take: () => pool.connect() });

type PoolConfig = pg.PoolConfig & { readonly pipeline: boolean };

function replacingBroken(pool: pg.Pool): pg.Pool {
  // The pool replaces a connection that breaks, and the queries on it fail. An 'error' event without a listener would
  // end the process. The pool emits it for an idle connection, the client for a connection in use.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** How much longer than the time limit of the server the client waits for an answer, in milliseconds. */
export const graceMs = 5_000;

/**
 * How PostgreSQL plans the statements of requests. Behind PgBouncer its `connect_query` has them (deploy/cluster/pgbouncer.ini).
 *
 * `plan_cache_mode`: a statement keeps one plan for all values until its tables are analysed. By default the server
 * compares the cost of that generic plan with the cost that it once estimated for plans with specific values. When newer
 * statistics count more rows, the generic plan looks expensive, and the server plans thousands of executions again.
 * That took 0.5 ms of each read, for minutes after each analysis of a growing change log. So nothing that the plan
 * depends on may be a parameter: a LIMIT is a literal, and a condition that does not apply to the values is left
 * out of the text.
 *
 * `random_page_cost`: the one plan may have been made when the tables were nearly empty, and serves lists of any
 * length. With the default, which is for disks that are slow to seek, the server would read a whole table of a thousand
 * rows where a few look-ups in an index are enough. The rows that are read all the time are in memory.
 *
 * `max_parallel_workers_per_gather`: the one plan may expect very many rows where a request reads a few. Starting parallel workers for it took
 * 40 ms of each page of a history, and the server has 8 of them for all its databases.
 */
export const planning: readonly string[] = [
  'set plan_cache_mode = force_generic_plan',
  'set random_page_cost = 1.1',
  'set max_parallel_workers_per_gather = 0',
];

/**
 * Sends the settings of a connection ahead of its first statement. They are not sent as parameters of the connection,
 * since poolers such as PgBouncer refuse such parameters.
 *
 * @param timeoutMs the time limit of a statement; 0 means no limit
 */
export function prepareConnection(client: pg.PoolClient, timeoutMs: number): void {
  const limits = ['statement_timeout', 'idle_in_transaction_session_timeout'].map(
    (name) => `set ${name} = ${timeoutMs}`,
  );
  sendSettings(client, [...reliedOn, ...planning, ...(timeoutMs > 0 ? limits : [])]);
}

/**
 * What statements rely on, whatever the server, the database or the role have as defaults:
 *
 * - `default_transaction_isolation`: in READ COMMITTED a statement sees what was committed before it began. In another
 *   isolation the later statements of a transaction see only what was committed before the first one, and a statement that
 *   has waited for a lock fails.
 * - `lock_timeout`: waits for locks have separate limits.
 * - `idle_session_timeout`: a connection of the pool that the server ends may mean that the server has crashed, so that everything is
 *   loaded again.
 * - `jit`: compiling a plan takes longer than running it. PostgreSQL compiles plans with a high cost: until version 17 that is each
 *   statement that reads a whole table although `enable_seqscan` is off.
 * - `row_security`: a statement of which a policy would hide rows fails. Otherwise a role that does not own the tables would find them empty, and
 *   allocate what is allocated.
 * - The forms in which values are read and written. Triggers make entity tags of numbers as `extra_float_digits` says.
 */
const reliedOn = [
  `set default_transaction_isolation = 'read committed'`,
  'set lock_timeout = 0',
  'set idle_session_timeout = 0',
  'set jit = off',
  'set row_security = off',
  `set datestyle = 'ISO'`,
  'set extra_float_digits = 1',
  'set standard_conforming_strings = on',
  'set array_nulls = on',
];

/** Sends only what statements rely on, ahead of the first statement of a connection without time limits. */
export const prepareWithoutLimits = (client: pg.PoolClient): void => sendSettings(client, reliedOn);

function sendSettings(client: pg.PoolClient, settings: readonly string[]): void {
  // If this fails, the connection is broken, and the statement after it fails as well.
  client.query(settings.join(';')).catch(() => {});
}

/** How long after the server has refused a connection no further connection is opened, in milliseconds. */
const refusedPauseMs = 1_000;

/**
 * Lets requests wait for one of the open connections of a pool while the server refuses a further connection: other programs may have taken
 * all, or the password was changed. node-postgres would fail the request for which it tried to open the connection, while other requests
 * continue.
 *
 * After a refusal no connection is opened for some time, then one; each success lets the next connection be opened. Meanwhile no open
 * connection is closed for being idle, since there may be no new one.
 *
 * @param options.hasOther whether callers have another pool. Then a pool without any connection does not connect again before
 *   that time is over.
 * @param options.refused is called with each refusal while there are open connections
 * @returns how a connection is taken, which fails with the refusal only if the pool has no open connection
 */
export function sparingRefusedConnections(
  { pool, take }: OpenPool,
  { hasOther, refused }: { readonly hasOther: boolean; readonly refused: ((error: unknown) => void) | undefined },
): TakeClient {
  const { options } = pool;
  const { max: most, connectionTimeoutMillis: patienceMs = 0 } = options;
  let opened = 0;
  /** The last refusal, until connections may be opened again. */
  let refusal: unknown;
  pool.on('connect', () => {
    opened += 1;
    if (options.max < most) allow(opened + 1);
  });
  pool.on('remove', () => {
    opened -= 1;
  });
  /** The pool also counts connections that are being opened, and `opened` also counts connections that are being closed. */
  const openNow = (): number => Math.min(opened, pool.totalCount);
  const allow = (connections: number): void => {
    options.max = Math.min(most, Math.max(1, connections));
    options.min = options.max < most ? options.max : 0;
  };
  const pause = (error: unknown): void => {
    allow(openNow());
    if (refusal === undefined) {
      const end = (): void => {
        refusal = undefined;
        if (options.max < most) allow(openNow() + 1);
      };
      setTimeout(end, refusedPauseMs).unref();
    }
    refusal = error;
  };

  return async () => {
    const startedMs = performance.now();
    for (;;) {
      if (hasOther && refusal !== undefined && openNow() === 0) throw refusal;
      try {
        return await take();
      } catch (error) {
        if (!isConnectionRefused(error)) throw error;
        pause(error);
        const isLate = patienceMs > 0 && performance.now() - startedMs > patienceMs;
        if (openNow() === 0 || isLate) throw error;
        refused?.(error);
      }
    }
  };
}

/**
 * Lets work that has to use the connections of the requests go one after the other, with a pause after work that fails: work that waits
 * for a lock would otherwise occupy these connections again and again.
 */
export function oneAfterTheOther(pauseMs: number): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  const pause = () => new Promise((end) => setTimeout(end, pauseMs));
  return (work) => {
    const done = last.then(work);
    last = done.catch(pause);
    return done;
  };
}

/**
 * Which connections to the server broke. When a connection breaks, the server may have crashed, another server may answer from now on, or
 * a virtual machine may have gone back to an earlier state: data that was read before may be of lost transactions.
 */
export type Breaks = {
  /** How many connections broke so far. */
  readonly count: number;
  /** Whether a connection broke, and since then the fleet was not loaded again, and nothing has proved that the server still runs. */
  isInDoubt(): boolean;
  /** Notes that everything was read again. @param count how many connections had broken when the reading began */
  settle(count: number): void;
};

/** `Breaks` for the code that opens connections and sends statements. */
export type BreakWatch = Breaks & {
  /** Watches a connection from its beginning. */
  watch(client: pg.PoolClient): void;
  /** Notes when a statement that is sent on a connection is answered. @returns the answer */
  noteAnswer<T>(client: pg.PoolClient, answer: Promise<T>): Promise<T>;
};

/**
 * A server that crashes ends all its connections. So a statement that is sent after a break, and answered on a connection that was open
 * before the break, proves that the server still runs: only the other connection was cut off, as by an administrator or a firewall.
 *
 * A connection to a pooler proves nothing, since the pooler reconnects to the server by itself. For the same reason a break of such a
 * connection is ignored if each statement returns the run of the server.
 */
export function watchForBreaks(): BreakWatch {
  type Connection = { readonly openedAfter: number; isDirect: boolean; isIgnored: boolean };
  const connections = new WeakMap<pg.PoolClient, Connection>();
  let count = 0;
  /** The number of breaks that are of no consequence any more, counted from the first. */
  let settled = 0;
  return {
    get count() {
      return count;
    },
    isInDoubt: () => count > settled,
    settle: (until) => {
      settled = Math.max(settled, until);
    },
    watch: (client) => {
      const connection = { openedAfter: count, isDirect: false, isIgnored: false };
      connections.set(client, connection);
      // 'error' is not emitted for a connection that this process closes.
      client.once('error', () => {
        if (!connection.isIgnored) count += 1;
      });
      const answered = ({ rows: [row] }: pg.QueryResult<{ pid: number; tellsCrashes: boolean }>) => {
        connection.isDirect = row?.pid === processIdOf(client);
        connection.isIgnored = !connection.isDirect && row?.tellsCrashes === true;
      };
      client.query(`select pg_backend_pid() as pid, ${tellsCrashes} as "tellsCrashes"`).then(answered, () => {});
    },
    noteAnswer: async (client, answer) => {
      const sentAfter = count;
      const result = await answer;
      const connection = connections.get(client);
      if (connection?.isDirect && connection.openedAfter <= settled) settled = Math.max(settled, sentAfter);
      return result;
    },
  };
}

/** The id of the server process, as named when the connection was opened. A pooler names a different id. */
const processIdOf = (client: pg.PoolClient): unknown => ('processID' in client ? client.processID : undefined);
