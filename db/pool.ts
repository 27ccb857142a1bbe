import { createHash } from 'node:crypto';
import { once } from 'node:events';
import pg from 'pg';

/**
 * Is told of each statement that ended, well or not, in the asynchronous context of who asked for it.
 *
 * @param text the SQL, in which parameters are `$1`, never their values
 * @param ms from sending it to its answer; in a transaction those before it count
 */
export type OnStatement = (text: string, ms: number) => void;

/** Opens a pool whose broken connections are replaced. */
export function openPool(config: pg.PoolConfig & { readonly pipeline: boolean }): pg.Pool {
  const pool = new pg.Pool(config);
  // A connection that breaks is replaced by the pool, and its queries fail. Without a listener the event would end the
  // process: of an idle one it comes from the pool, of one in use from the client.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** How much later than the server the client gives up, in milliseconds. */
export const graceMs = 5_000;

/**
 * Sent ahead of the connection's first statement. Not among the parameters of the connection, which poolers such as
 * PgBouncer refuse.
 *
 * A statement has one plan for all values until its tables are analysed: left to itself, the server compares what it expects of that
 * plan with what it once expected of plans for some values, and where its statistics tell of more rows by now it plans thousands of
 * executions anew. That took 0.5 ms of each read, for minutes after each time that a growing change log was analysed. The price: what
 * the plan depends on must not be a parameter. A LIMIT is a literal, and a condition that holds for some values only is left out of the
 * text where it does not.
 *
 * The plan may be of a time when there was little yet, and is for lists of any length: as on a disk that is slow to seek, the server
 * would read all of a table of a thousand rows then, where a few look-ups in an index do. What is read all the time is in memory.
 *
 * @param timeoutMs how long a statement may take; 0 for as long as it likes
 */
export function prepareConnection(client: pg.PoolClient, timeoutMs: number): void {
  const limits = ['statement_timeout', 'idle_in_transaction_session_timeout'].map(
    (name) => `set ${name} = ${timeoutMs}`,
  );
  const settings = [
    'set plan_cache_mode = force_generic_plan',
    'set random_page_cost = 1.1',
    ...(timeoutMs > 0 ? limits : []),
  ];
  // Where this fails, so does the statement behind it: the connection is broken.
  client.query(settings.join(';')).catch(() => {});
}

/**
 * Names every statement by its text, so that the server parses and plans it once per connection. Our statements take
 * arrays where the number of values varies, so there are few texts.
 */
export function preparing(pool: pg.Pool, onStatement: OnStatement | undefined): pg.Pool {
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
  // Kysely and transaction() call connect() for a promise and query(text, values) only.
  pool.connect = (async () => {
    const client = await connect();
    if (wrapped.has(client)) return client;
    wrapped.add(client);
    const query = client.query.bind(client) as (config: pg.QueryConfig) => Promise<pg.QueryResult>;
    const send: Send = (text, values = []) =>
      query(isReusable(text) ? { name: nameOf(text), text, values } : { text, values }).catch((error: unknown) =>
        afterItsEnd(client, error),
      );
    client.query = (onStatement === undefined ? send : timed(send, onStatement)) as typeof client.query;
    return client;
  }) as typeof pool.connect;
  return pool;
}

type Send = (text: string, values?: unknown[]) => Promise<pg.QueryResult>;

/**
 * A connection that was given up looks well until it has ended: an error that waits for that keeps it from going back to the
 * pool.
 */
async function afterItsEnd(client: pg.PoolClient, error: unknown): Promise<never> {
  if (isUnheard(error)) await once(client, 'end');
  throw error;
}

const timed =
  (send: Send, onStatement: OnStatement): Send =>
  async (text, values) => {
    const startedMs = performance.now();
    try {
      return await send(text, values);
    } finally {
      onStatement(text, performance.now() - startedMs);
    }
  };

const isReusable = (text: string): boolean => /^\s*(select|with|insert|update|delete)\b/i.test(text);

/** Whether node-postgres gave a connection up since the server was not heard for `query_timeout`. */
export const isUnheard = (error: unknown): boolean => error instanceof Error && error.message === 'Query read timeout';
