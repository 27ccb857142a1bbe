import { createHash } from 'node:crypto';
import { once } from 'node:events';
import pg from 'pg';
import type { CommitWatch } from './commit_watch.ts';
import { isReadOnly, isTooManyConnections, isUnheard } from './failures.ts';
import { hostsOf, newHostSearch, openHostsPool } from './hosts.ts';
import { tellsCrashes } from './server_state.ts';

/**
 * Called after each statement, whether it succeeded or failed, in the asynchronous context of its caller.
 *
 * @param text the SQL with parameters as `$1`, never with their values
 * @param ms the time from sending the statement to its answer. In a transaction it includes the statements before this
 *   one.
 */
export type OnStatement = (text: string, ms: number) => void;

/**
 * How the pools of a database are opened. A URL with one server and without a wanted kind gets pools of node-postgres
 * itself.
 */
export function poolsOf(url: string): (config: PoolConfig) => pg.Pool {
  const asked = hostsOf(url);
  if (asked.hosts.length === 1 && asked.target === 'any') {
    return (config) => replacingBroken(new pg.Pool({ ...config, connectionString: url }));
  }
  const search = newHostSearch(asked);
  return (config) => replacingBroken(openHostsPool(config, url, asked, search));
}

type PoolConfig = pg.PoolConfig & { readonly pipeline: boolean };

function replacingBroken(pool: pg.Pool): pg.Pool {
  // The pool replaces a connection that breaks, and the queries on it fail. An 'error' event without a listener would
  // end the process. The pool emits it for an idle connection, the client for a connection in use.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** How much longer than the server's own time limit the client waits for an answer, in milliseconds. */
export const graceMs = 5_000;

/**
 * Sends the settings of a connection ahead of its first statement. They are not among the parameters of the connection,
 * since poolers such as PgBouncer refuse these.
 *
 * `plan_cache_mode`: a statement keeps one plan for all values until its tables are analysed. By default the server
 * compares the cost of that generic plan with the cost that it once estimated for plans with given values. When newer
 * statistics count more rows, the generic plan looks expensive, and the server plans thousands of executions again.
 * That took 0.5 ms of each read, for minutes after each analysis of a growing change log. So nothing that the plan
 * depends on may be a parameter: a LIMIT is a literal, and a condition that does not apply to the given values is left
 * out of the text.
 *
 * `random_page_cost`: the one plan may have been made when the tables were nearly empty, and serves lists of any
 * length. With the default, which is for disks that are slow to seek, the server would read a whole table of a thousand
 * rows where a few look-ups in an index are enough. The rows that are read all the time are in memory.
 *
 * @param timeoutMs the time limit of a statement; 0 means no limit
 */
export function prepareConnection(client: pg.PoolClient, timeoutMs: number): void {
  const limits = ['statement_timeout', 'idle_in_transaction_session_timeout'].map(
    (name) => `set ${name} = ${timeoutMs}`,
  );
  sendSettings(client, [
    ...reliedOn,
    'set plan_cache_mode = force_generic_plan',
    'set random_page_cost = 1.1',
    ...(timeoutMs > 0 ? limits : []),
  ]);
}

/**
 * What statements rely on, whatever the server, the database or the role have as defaults:
 *
 * - `default_transaction_isolation`: in READ COMMITTED a statement sees what was committed before it began. In another
 *   isolation the later statements of a transaction see only what was committed before the first one, and a statement that
 *   has waited for a lock fails.
 * - `lock_timeout`: waits for locks have limits of their own.
 * - The forms in which values are read and written. Triggers make entity tags of numbers as `extra_float_digits` says.
 */
const reliedOn = [
  `set default_transaction_isolation = 'read committed'`,
  'set lock_timeout = 0',
  `set datestyle = 'ISO'`,
  'set extra_float_digits = 1',
  'set standard_conforming_strings = on',
  'set array_nulls = on',
];

function sendSettings(client: pg.PoolClient, settings: readonly string[]): void {
  // If this fails, the connection is broken, and the statement after it fails as well.
  client.query(settings.join(';')).catch(() => {});
}

/**
 * Begins a transaction of several statements. It says the isolation itself: behind a pooler in transaction mode it may run on
 * a connection of the server that `prepareConnection` has not prepared.
 */
export const begin = 'begin isolation level read committed';

/**
 * Lets every transaction that a connection begins run without time limits, whatever the role, the database or the
 * connection have. A pooler in transaction mode may have given this transaction a connection of the server on which the
 * limits of `prepareConnection` were set.
 */
export function beginWithoutLimits(client: pg.PoolClient): void {
  sendSettings(client, reliedOn);
  const query = client.query.bind(client) as (...sent: unknown[]) => unknown; // one of its many forms
  const sendBegin = (text: unknown, ...more: unknown[]) =>
    query(isBegin(text) ? `${beginOf(text)}; ${noLimits}` : text, ...more);
  client.query = sendBegin as typeof client.query;
}

/**
 * A connection of the requests, lent for work without time limits, which `sendingFrom` has wrapped. Its own limits are in force again after
 * each transaction, and after each statement outside of one.
 *
 * @param timeoutMs the limit that `prepareConnection` has set
 */
export function withoutLimits(client: pg.PoolClient, timeoutMs: number): pg.PoolClient {
  const send = client.query.bind(client) as unknown as Send; // the form that `sendingFrom` gave it
  const sendPatiently: Send = (text, values) => send(text, values, { isPatient: true });
  // If this fails, the connection is broken.
  const setTimeLimit = (ms: number) => void sendPatiently(`set statement_timeout = ${ms}`).catch(() => {});
  let isInTransaction = false;
  const query: Send = (text, values) => {
    if (isBegin(text)) {
      isInTransaction = true;
      return sendPatiently(`${beginOf(text)}; ${noLimits}`);
    }
    if (isInTransaction) {
      isInTransaction = !isEnd(text);
      return sendPatiently(text, values);
    }
    if (timeoutMs === 0) return sendPatiently(text, values);
    // All three are sent at once, so that a pooler in transaction mode has no time to give this connection of the server to another client.
    setTimeLimit(0);
    const answer = sendPatiently(text, values);
    setTimeLimit(timeoutMs);
    return answer;
  };
  const lent = { query, release: (error?: Error | boolean) => client.release(error) };
  return lent as unknown as pg.PoolClient; // Kysely uses nothing else of it
}

const isBegin = (text: unknown): text is string =>
  typeof text === 'string' && /^(begin|start transaction)\b/.test(text);
const isEnd = (text: string): boolean => text === 'commit' || text === 'rollback';
/** Kysely sends `begin` for a transaction whose isolation is not asked for. */
const beginOf = (text: string): string => (text === 'begin' ? begin : text);
const noLimits = `set local lock_timeout = 0; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0;
  select set_config('transaction_timeout', '0', true) where current_setting('transaction_timeout', true) is not null`;

/**
 * Gives every statement a name made from its text, so that the server parses and plans it once per connection. Our
 * statements take arrays where the number of values varies, so there are few different texts. Without
 * `preparedStatements` the server parses and plans a statement each time.
 */
export function sendingFrom(
  pool: pg.Pool,
  options: {
    readonly preparedStatements: boolean;
    readonly onStatement: OnStatement | undefined;
    readonly breaks: BreakWatch;
    /** Undefined for the embedded database, which has no standby. */
    readonly commits: CommitWatch | undefined;
  },
): pg.Pool {
  const { preparedStatements, onStatement, breaks, commits } = options;
  const names = new Map<string, string>();
  const nameOf = (text: string): string => {
    let name = names.get(text);
    if (name === undefined) {
      name = createHash('sha256').update(text).digest('base64url').slice(0, 22);
      names.set(text, name);
    }
    return name;
  };
  const wrapped = new WeakSet<pg.PoolClient>();
  const connect = pool.connect.bind(pool);
  // Kysely and transaction() only call connect() without a callback, and query(text, values).
  pool.connect = (async () => {
    const client = await connect();
    if (wrapped.has(client)) return client;
    wrapped.add(client);
    const query = client.query.bind(client) as (config: pg.QueryConfig) => Promise<pg.QueryResult>;
    const noted = (answered: Promise<pg.QueryResult>): Promise<pg.QueryResult> => {
      const answer = answered.catch((error: unknown) => afterItsEnd(client, error));
      return breaks.isInDoubt() ? breaks.noteAnswer(client, answer) : answer;
    };
    const send: Send = (asked, parameters = [], { isPatient = false } = {}) => {
      const text = beginOf(asked);
      const values = parameters.map((value) => (Array.isArray(value) ? arrayText(value) : value));
      const named = preparedStatements && isReusable(text) ? { name: nameOf(text), text, values } : { text, values };
      const patient = { ...named, query_timeout: neverMs };
      if (isPatient) return noted(query(patient));
      if (commits?.isWatched(text)) {
        const refusal = commits.refusalOf(text);
        if (refusal !== undefined) return Promise.reject(refusal);
        return noted(commits.watch(client, query(patient)));
      }
      return noted(query(named));
    };
    client.query = (onStatement === undefined ? send : timed(send, onStatement)) as typeof client.query;
    return client;
  }) as typeof pool.connect;
  return pool;
}

/** The longest time of a timer, instead of the `query_timeout` of the pool. */
const neverMs = 2 ** 31 - 1;

/** @param options.isPatient whether the answer may take any time; otherwise the pool or `CommitWatch` ends what takes too long */
type Send = (text: string, values?: unknown[], options?: { readonly isPatient?: boolean }) => Promise<pg.QueryResult>;

/**
 * Throws the error of a query. After a time-out of the client, it first waits until the connection has ended: until
 * then the connection looks usable, and the caller would put it back into the pool.
 *
 * A connection that refuses writes is not used again: it may be of a time when this was the default of the role or the database, or lead to
 * a server that was the primary. The next one need not.
 */
async function afterItsEnd(client: pg.PoolClient, error: unknown): Promise<never> {
  if (isReadOnly(error)) {
    const { release } = client;
    client.release = () => release(true);
  }
  if (isUnheard(error)) await once(client, 'end');
  throw error;
}

const timed =
  (send: Send, onStatement: OnStatement): Send =>
  async (text, values, options) => {
    if (options?.isPatient) return send(text, values, options); // such as a load of the fleet, which may take long
    const startedMs = performance.now();
    try {
      return await send(text, values, options);
    } finally {
      onStatement(text, performance.now() - startedMs);
    }
  };

const isReusable = (text: string): boolean => /^\s*(select|with|insert|update|delete)\b/i.test(text);

/**
 * A list of numbers or of texts as PostgreSQL reads it. node-postgres would make the same text, but with two searches in each element:
 * that is a twentieth of the CPU time of a claim for a hundred consumers.
 *
 * @returns the list as it is where it contains something else, or a text that must be escaped
 */
export function arrayText(values: readonly unknown[]): string | readonly unknown[] {
  const [first] = values;
  if (typeof first === 'number') return values.every(isNumber) ? `{${values.join(',')}}` : values;
  if (typeof first === 'string') return values.every(isPlainText) ? `{"${values.join('","')}"}` : values;
  return values;
}

const isNumber = (value: unknown): boolean => typeof value === 'number';

const isPlainText = (value: unknown): boolean =>
  typeof value === 'string' && !value.includes('"') && !value.includes('\\');

/** So long after the server has refused a connection no further one is opened, in milliseconds. */
const fullServerPauseMs = 1_000;

/**
 * Lets requests wait for one of the open connections of a pool where the server has no place for a further one: other programs may have
 * taken all. node-postgres would fail the request for which it opened that connection, while others go on.
 *
 * After a refusal no connection is opened for some time, then one; each that succeeds lets the next one be opened. Meanwhile no open one
 * is closed for being idle, since its place may be gone.
 *
 * @param options.hasOther whether callers have another pool to turn to. Then a pool without any connection does not ask the server again
 *   before that time is over.
 * @returns the same pool, whose `connect` rejects with the refusal only if it has no open connection
 */
export function sparingFullServer(pool: pg.Pool, { hasOther = false }: { readonly hasOther?: boolean } = {}): pg.Pool {
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
  /** The pool counts connections that are being opened, and `opened` those that are being closed. */
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
      setTimeout(end, fullServerPauseMs).unref();
    }
    refusal = error;
  };

  const connect = pool.connect.bind(pool);
  // Kysely and transaction() call connect() without a callback, so only the form with a promise is replaced.
  pool.connect = (async () => {
    const startedMs = performance.now();
    for (;;) {
      if (hasOther && refusal !== undefined && openNow() === 0) throw refusal;
      try {
        return await connect();
      } catch (error) {
        if (!isTooManyConnections(error)) throw error;
        pause(error);
        const isLate = patienceMs > 0 && performance.now() - startedMs > patienceMs;
        if (openNow() === 0 || isLate) throw error;
      }
    }
  }) as typeof pool.connect;
  return pool;
}

/**
 * Makes a pool use the connections of another one where it gets none of its own from a full server.
 *
 * @param borrow takes a connection of the other pool
 */
export function borrowingFrom(pool: pg.Pool, borrow: () => Promise<pg.PoolClient>): pg.Pool {
  const connect = pool.connect.bind(pool);
  pool.connect = (async () => {
    try {
      return await connect();
    } catch (error) {
      if (isTooManyConnections(error)) return borrow();
      throw error;
    }
  }) as typeof pool.connect;
  return pool;
}

/**
 * Lets work that has to use the connections of others go one after the other, with a pause after what fails: what waits for a lock would
 * otherwise occupy them again and again.
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
 * Which connections to the server broke. The server may have crashed then, another one may answer from now on, or a virtual machine may
 * have gone back to an earlier state: what was read before may be of transactions that are lost.
 */
export type Breaks = {
  /** How many connections broke so far. */
  readonly count: number;
  /** Whether one broke, and since then nothing was read anew, and nothing has proved that the server goes on as before. */
  isInDoubt(): boolean;
  /** Notes that all was read anew, beginning when so many had broken. */
  settle(count: number): void;
};

/** The same for those that open connections and send statements. */
export type BreakWatch = Breaks & {
  /** Watches a connection from its beginning. */
  watch(client: pg.PoolClient): void;
  /** Notes when a statement is answered that is being sent on a connection. @returns the answer */
  noteAnswer<T>(client: pg.PoolClient, answer: Promise<T>): Promise<T>;
};

/**
 * A server that crashes ends all its connections. So a statement that is sent after a break, and answered on a connection that was open
 * before it, proves that the server goes on: only the other one was cut off, as by an administrator or a firewall.
 *
 * A connection to a pooler proves nothing, since the pooler connects to the server anew when it has to. For the same reason it means nothing
 * that it breaks, if each statement tells the run of the server.
 */
export function watchForBreaks(): BreakWatch {
  type Connection = { readonly openedAfter: number; isDirect: boolean; isIgnored: boolean };
  const connections = new WeakMap<pg.PoolClient, Connection>();
  let count = 0;
  /** The breaks up to this one are of no consequence any more. */
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
      // It is not emitted for a connection that this process ends.
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

/** The process that the server named when the connection was opened. A pooler names one of its own. */
const processIdOf = (client: pg.PoolClient): unknown => ('processID' in client ? client.processID : undefined);
