import { hash } from 'node:crypto';
import { once } from 'node:events';
import type pg from 'pg';
import type { CommitWatch } from './commit_watch.ts';
import { hasSqlstate, isUnheard, mayBeOfSession, sqlstate } from './failures.ts';
import type { TakeClient } from './hosts.ts';
import type { BreakWatch } from './pool.ts';

/**
 * Called after each statement, whether it succeeded or failed, in the asynchronous context of its caller.
 *
 * @param text the SQL with parameters as `$1`, never with their values
 * @param ms the time from sending the statement to its answer, without that of statements before it on the connection
 */
export type OnStatement = (text: string, ms: number) => void;

/** @param options.isUnlimited whether the answer may take any time; otherwise the pool or `CommitWatch` ends what takes too long */
export type Send = (
  text: string,
  values?: readonly unknown[],
  options?: { readonly isUnlimited?: boolean },
) => Promise<pg.QueryResult>;

/** A connection to the server that is lent for some statements. */
export type Connection = {
  readonly send: Send;
  /** Between `cork` and `uncork` statements are collected for one write to the socket, which the embedded engine does not have. */
  cork(): void;
  uncork(): void;
  /** Releases the connection. @param broken the error after which the connection must not be used again */
  release(broken?: Error): void;
};

/** Lends a connection. @throws the error of the server, or of the network, if there is none */
export type Connect = () => Promise<Connection>;

/**
 * Begins a transaction of several statements. It sets the isolation: behind a pooler in transaction mode it may run on
 * a connection of the server that `prepareConnection` has not prepared.
 */
export const begin = 'begin isolation level read committed';

/**
 * Lends connections on which every statement has a name made from its text, so that the server parses and plans it once per connection. Our
 * statements take arrays where the number of values varies, so there are few different texts. Without
 * `preparedStatements` the server parses and plans a statement each time.
 */
export function lendingFrom(
  take: TakeClient,
  options: {
    readonly preparedStatements: boolean;
    readonly onStatement: OnStatement | undefined;
    readonly breaks: BreakWatch;
    /** Undefined for the embedded database, which has no standby. */
    readonly commits: CommitWatch | undefined;
  },
): Connect {
  const { preparedStatements, onStatement, breaks, commits } = options;
  const names = new Map<string, string>();
  const nameOf = (text: string): string => {
    let name = names.get(text);
    if (name === undefined) {
      name = hash('sha256', text, 'base64url').slice(0, 22);
      names.set(text, name);
    }
    return name;
  };
  const open = (client: pg.PoolClient): Lent => {
    const plain = plainConnection(client);
    /** The answer for which the connection stays in use after its release. Each loan resets it. */
    let keptUntil: Promise<unknown> | undefined;
    let isSpent = false;
    const holder = {
      keepUntil: (answer: Promise<unknown>) => {
        keptUntil = answer;
      },
      breakOff: () => void client.connection.stream.destroy(),
    };
    /**
     * Throws the error of a query. After a time-out of the client, it first waits until the connection has ended: until
     * then the connection looks usable, and the caller would put it back into the pool.
     *
     * After an error that may be of the session, the connection is not used again. The embedded database has only one.
     */
    const failed = async (error: unknown): Promise<never> => {
      isSpent ||= commits !== undefined && mayBeOfSession(error);
      if (isUnheard(error)) await once(client, 'end');
      throw error;
    };
    const noted = (answered: Promise<pg.QueryResult>): Promise<pg.QueryResult> => {
      const answer = answered.catch(failed);
      return breaks.isInDoubt() ? breaks.noteAnswer(client, answer) : answer;
    };
    const send: Send = (text, parameters = [], { isUnlimited = false } = {}) => {
      const values = parameters.map((value) => (Array.isArray(value) ? arrayText(value) : value));
      const named = preparedStatements && isReusable(text) ? { name: nameOf(text), text, values } : { text, values };
      const unlimited = { ...named, query_timeout: neverMs };
      if (isUnlimited) return noted(client.query(unlimited));
      if (commits?.isWatched(text)) {
        const refusal = commits.refusalOf(text);
        if (refusal !== undefined) return Promise.reject(refusal);
        return noted(commits.watch(holder, client.query(unlimited)));
      }
      return noted(client.query(named));
    };
    return {
      begin: () => {
        keptUntil = undefined;
      },
      connection: {
        ...plain,
        send: onStatement === undefined ? send : timed(send, onStatement),
        release: (broken) => {
          const { release } = client;
          const end = (isUsable: boolean): void => release(isUsable && !isSpent ? undefined : (broken ?? true));
          if (keptUntil === undefined) end(broken === undefined);
          else
            keptUntil.then(
              () => end(broken === undefined),
              () => end(false),
            );
        },
      },
    };
  };
  const known = new WeakMap<pg.PoolClient, Lent>();
  return async () => {
    const client = await take();
    let lent = known.get(client);
    if (lent === undefined) {
      lent = open(client);
      known.set(client, lent);
    }
    lent.begin();
    return lent.connection;
  };
}

/** @param begin called when the connection is lent again */
type Lent = { readonly connection: Connection; begin(): void };

/** A connection of node-postgres as it is. After an error that may be of the session, it is not used again. */
function plainConnection(client: pg.PoolClient): Connection {
  let isSpent = false;
  const failed = (error: unknown): never => {
    isSpent ||= mayBeOfSession(error);
    throw error;
  };
  return {
    send: (text, values = []) => client.query(text, [...values]).catch(failed),
    cork: () => client.connection.stream.cork(),
    uncork: () => client.connection.stream.uncork(),
    release: (broken) => client.release(broken ?? isSpent),
  };
}

/**
 * Lends connections on which every transaction runs without time limits, whatever the role, the database or the
 * connection have. A pooler in transaction mode may have assigned this transaction a connection of the server on which the
 * limits of `prepareConnection` were set.
 */
export const lendingWithoutLimits =
  (take: TakeClient): Connect =>
  async () => {
    const connection = plainConnection(await take());
    return {
      ...connection,
      send: (text, values) => connection.send(isBegin(text) ? `${text}; ${noLimits}` : text, values),
    };
  };

/**
 * A connection of the requests, lent for work without time limits. Its own limits are in force again after
 * each transaction, and after each statement outside of one.
 *
 * @param timeoutMs the limit that `prepareConnection` has set
 */
export function withoutLimits(connection: Connection, timeoutMs: number): Connection {
  const sendUnlimited: Send = (text, values) => connection.send(text, values, { isUnlimited: true });
  // If this fails, the connection is broken.
  const setTimeLimit = (ms: number) => void sendUnlimited(`set statement_timeout = ${ms}`).catch(() => {});
  let isInTransaction = false;
  const send: Send = (text, values) => {
    if (isBegin(text)) {
      isInTransaction = true;
      return sendUnlimited(`${text}; ${noLimits}`);
    }
    if (isInTransaction) {
      isInTransaction = !isEnd(text);
      return sendUnlimited(text, values);
    }
    if (timeoutMs === 0) return sendUnlimited(text, values);
    // All three are sent at once, so that a pooler in transaction mode has no time to assign this connection of the server to another
    // client.
    setTimeLimit(0);
    const answer = sendUnlimited(text, values);
    setTimeLimit(timeoutMs);
    return answer;
  };
  return { ...connection, send };
}

const isBegin = (text: string): boolean => /^(begin|start transaction)\b/.test(text);
const isEnd = (text: string): boolean => text === 'commit' || text === 'rollback';
const noLimits = `set local lock_timeout = 0; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0;
  select set_config('transaction_timeout', '0', true) where current_setting('transaction_timeout', true) is not null`;

/** The longest time of a timer, instead of the `query_timeout` of the pool. */
const neverMs = 2 ** 31 - 1;

function timed(send: Send, onStatement: OnStatement): Send {
  /** When the answer to the previous statement came. A transaction sends its statements together, so each waits for the previous one. */
  let freeSinceMs = 0;
  return async (text, values, options) => {
    if (options?.isUnlimited) return send(text, values, options); // such as a load of the fleet, which may take long
    const sentMs = performance.now();
    const report = (): void => {
      const endMs = performance.now();
      onStatement(text, endMs - Math.max(sentMs, freeSinceMs));
      freeSinceMs = endMs;
    };
    try {
      const result = await send(text, values, options);
      if (result.command !== 'ROLLBACK' || isRollback(text)) report(); // not a commit after a statement that failed, which was reported
      return result;
    } catch (error) {
      // What follows a failed statement of the transaction was not slow: it was not done, and has waited for that one only.
      if (!hasSqlstate(error, sqlstate.failedTransaction)) report();
      throw error;
    }
  };
}

const isRollback = (text: string): boolean => /^rollback\b/i.test(text);

const isReusable = (text: string): boolean => /^\s*(select|with|insert|update|delete)\b/i.test(text);

/**
 * A list of numbers or of texts in the form in which PostgreSQL reads it. node-postgres would make the same text, but with two searches in
 * each element: they take a twentieth of the CPU time of a claim for a hundred consumers.
 *
 * @returns the list itself if it contains other values, or a text that must be escaped
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
