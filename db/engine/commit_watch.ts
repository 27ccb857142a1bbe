import { type Kysely, sql } from 'kysely';
import type pg from 'pg';
import type { Tables } from '../tables.ts';
import { CommitsUnconfirmed, isTimedOut } from './failures.ts';
import { onlyRow } from './only_row.ts';

/**
 * Watches the answers to writes. A server without its synchronous standby answers no commit until a standby is back, and no time limit of
 * a statement ends this wait. Each write that is sent meanwhile occupies a connection, and other writes wait for its locks.
 */
export type CommitWatch = {
  /**
   * The promise that a transaction must await before it is sent, if it writes; undefined if it can be sent at once.
   *
   * @throws CommitsUnconfirmed where commits have been unconfirmed for too long to wait for them
   */
  clearance(texts: readonly string[]): Promise<void> | undefined;
  /** Whether commits are known to be unconfirmed. Then the locks that a write lacks are held by commits. */
  isUnconfirmed(): boolean;
  /** Whether the answer to a statement must be watched: the statement writes, locks or commits. */
  isWatched(text: string): boolean;
  /** The error with which a statement that would write is refused; undefined if the statement may be sent. */
  refusalOf(text: string): CommitsUnconfirmed | undefined;
  /**
   * Watches an answer. If the answer does not come in time because commits are unconfirmed, the request fails, and the connection stays
   * in use until the answer comes: the server would keep its side open anyway. If the answer does not come for another reason, the
   * connection is closed.
   *
   * @returns the answer
   */
  watch(connection: Holder, answer: Promise<pg.QueryResult>): Promise<pg.QueryResult>;
  /** Closes the connections that wait for a standby, now or later: no request awaits their answers any more. */
  close(): void;
};

/** A connection that waits for an answer. */
type Holder = {
  /** Keeps the connection in use until its answer comes, although the request releases it earlier. */
  keepUntil(answer: Promise<unknown>): void;
  /** Closes the connection. */
  breakOff(): void;
};

/** If a write has no answer after this time, in milliseconds, the state of the server is checked. */
const slowMs = 250;
/** The time between two checks for missing answers, while some are missing. */
const checkEveryMs = 100;
/** How long further writes wait while commits are unconfirmed, before they are refused. A standby may just be slow. */
const longestHoldMs = 5_000;

const writes = /^\s*(truncate|lock)\b|\b(insert\s+into|update\s+\w|delete\s+from|for\s+(no\s+key\s+)?update)\b/i;

/**
 * Begins to watch.
 *
 * @param options.isConfirming reads from the server whether no commit has waited for a standby for this number of milliseconds
 * @param options.statementTimeoutMs after this time a request whose commit is unconfirmed fails; 0 means never
 * @param options.graceMs how much longer the answer may take if the server does not wait for a standby
 */
export function watchCommits(options: {
  readonly isConfirming: (ms: number) => Promise<boolean>;
  readonly statementTimeoutMs: number;
  readonly graceMs: number;
}): CommitWatch {
  const { isConfirming, statementTimeoutMs, graceMs } = options;
  const holdMs = statementTimeoutMs === 0 ? longestHoldMs : Math.min(longestHoldMs, statementTimeoutMs / 2);
  type Missing = { readonly sentMs: number; isAbandoned: boolean; abandon(): void; breakOff(): void };
  /** The answers that are missing, the oldest first. */
  const missing = new Set<Missing>();
  const isWrite = new Map<string, boolean>();
  let timer: NodeJS.Timeout | undefined;
  let isChecking = false;
  /** Since when it is known that commits are unconfirmed. */
  let heldSinceMs: number | undefined;
  /** The promise that later writes wait for. */
  let held: PromiseWithResolvers<void> | undefined;

  let isClosed = false;
  /** Set by the timer only: the statements of a transaction are sent at once, and so either all of them are refused or none. */
  let isRefusing = false;
  const isWriting = (text: string): boolean => {
    let known = isWrite.get(text);
    if (known === undefined) {
      known = writes.test(text);
      isWrite.set(text, known);
    }
    return known;
  };
  const resume = (): void => {
    heldSinceMs = undefined;
    isRefusing = false;
    held?.resolve();
    held = undefined;
  };
  const endOverdue = (): void => {
    if (statementTimeoutMs === 0) return;
    const nowMs = performance.now();
    for (const each of missing) {
      const ageMs = nowMs - each.sentMs;
      if (ageMs < statementTimeoutMs) return;
      if (heldSinceMs === undefined) {
        // Also if the request has failed already: if the server that waited for its standby has died, no error ends the connection.
        if (ageMs > statementTimeoutMs + graceMs) each.breakOff();
      } else if (!each.isAbandoned) {
        each.abandon();
      }
    }
  };
  const check = (): void => {
    const [oldest] = missing;
    if (oldest === undefined) {
      clearInterval(timer);
      timer = undefined;
      resume();
      return;
    }
    endOverdue();
    if (isClosed) {
      for (const each of missing) if (each.isAbandoned || heldSinceMs !== undefined) each.breakOff();
    }
    isRefusing = heldSinceMs !== undefined && performance.now() - heldSinceMs > holdMs;
    if (isRefusing) held?.reject(new CommitsUnconfirmed());
    if (performance.now() - oldest.sentMs < slowMs) resume();
    else if (!isChecking) void askServer();
  };
  const askServer = async (): Promise<void> => {
    isChecking = true;
    try {
      if (await isConfirming(slowMs)) resume();
      // If all answers have come meanwhile, the timer is stopped, and nothing would end the wait of the next writes.
      else if (missing.size > 0) heldSinceMs ??= performance.now();
    } catch {
      // A server that does not answer may or may not wait for a standby: its known state stays.
    } finally {
      isChecking = false;
    }
  };

  return {
    clearance: (texts) => {
      if (heldSinceMs === undefined || !texts.some(isWriting)) return undefined;
      if (isRefusing) throw new CommitsUnconfirmed();
      held ??= Promise.withResolvers();
      held.promise.catch(() => {}); // the waiting writes get the error
      return held.promise;
    },
    isUnconfirmed: () => heldSinceMs !== undefined,
    isWatched: (text) => text === 'commit' || isWriting(text),
    refusalOf: (text) => (isRefusing && isWriting(text) ? new CommitsUnconfirmed() : undefined),
    watch: (connection, answer) =>
      new Promise((resolve, reject) => {
        const each: Missing = {
          sentMs: performance.now(),
          isAbandoned: false,
          abandon: () => {
            each.isAbandoned = true;
            connection.keepUntil(answer);
            reject(new CommitsUnconfirmed());
          },
          breakOff: connection.breakOff,
        };
        missing.add(each);
        timer ??= setInterval(check, checkEveryMs).unref();
        answer.then(
          (result) => {
            missing.delete(each);
            resolve(result);
          },
          (error: unknown) => {
            missing.delete(each);
            // The statement timed out while it waited for a lock, which a commit holds.
            reject(isTimedOut(error) && heldSinceMs !== undefined ? new CommitsUnconfirmed() : error);
          },
        );
      }),
    close: () => {
      isClosed = true;
      if (missing.size > 0) check();
    },
  };
}

/**
 * Whether the server confirms commits: no commit in this database has waited for a synchronous standby for longer than this time. A role
 * sees this only of its own connections, and only these matter.
 *
 * @param ms the time in milliseconds
 */
export async function isConfirming(kysely: Kysely<Tables>, ms: number): Promise<boolean> {
  const { waits } = await onlyRow(
    kysely,
    sql<{ readonly waits: boolean }>`select exists (select from pg_stat_activity where datname = current_database()
      and wait_event = 'SyncRep' and query_start < clock_timestamp() - ${ms}::integer * interval '1 ms') as waits`,
  );
  return !waits;
}
