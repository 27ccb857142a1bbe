import type { Logger } from 'pino';
import {
  failureKind,
  failureOf,
  isLockRefused,
  isLostRace,
  isTimedOut,
  isUnavailable,
} from '../../db/engine/failures.ts';

/**
 * Logs once when the database cannot be reached, and once when it can again, however many requests fail meanwhile. Failures of some
 * requests only, such as a full disk, a read-only database or a lock of another program, are logged once a minute at most.
 */
export type Outages = {
  /**
   * Takes note of an error. @returns whether it is one of these failures;
   * then the caller need not log it
   */
  notice(error: unknown): boolean;
  /** Takes note of an answer of the database. @param sentMs when the query was sent, by `performance.now()` */
  answered(sentMs: number): void;
};

/** An error that does not concern all requests is logged again if this time has passed since the last one of its kind. */
const repeatedAfterMs = 60_000;

/** What is logged of an error that does not concern all requests; undefined for other errors. */
function lineOf(error: unknown): string | undefined {
  switch (failureKind(error)) {
    case 'commits unconfirmed':
      return 'The database does not confirm commits: its synchronous standby may be gone. Writes are answered 503 until it does';
    case 'no space left':
      return 'The database has no disk or memory left, or cannot use its files: requests that need them are answered 503';
    case 'read-only':
      return 'The database is read-only: it is a standby, or default_transaction_read_only is on. Writes are answered 503';
    case 'prepared statements lost':
      return (
        'A pooler in transaction mode does not support prepared statements: requests that fail for this reason are answered 503. Set ' +
        '[placement_database] prepared_statements = false and restart; or give PgBouncer, 1.21 or newer, a max_prepared_statements above 0'
      );
    case 'no id left':
      return 'A table has no id left for a new row: requests that need one are answered 503. "placement-status upgrade check" has the remedy';
    case 'access refused':
      return (
        'The database refuses the login of the service: requests are answered 503 until it accepts it. Undo what was changed in the database, or ' +
        'correct [placement_database] connection and restart'
      );
    case 'not permitted':
      return 'The role of the service lacks a privilege in the database: requests that need it are answered 503 until it is granted';
    case 'lock wait too long':
    case 'lock refused':
      return (
        'Another program holds a lock in the database for longer than a statement may take: requests that need it are answered 503. ' +
        'pg_stat_activity shows it, perhaps as "idle in transaction", and pg_blocking_pids() which sessions it blocks'
      );
    case 'timed out':
      return 'The database did not answer within [placement_database] statement_timeout: requests that wait for that long are answered 503';
    case 'lost race':
      return 'Transactions fail repeatedly by deadlocks or conflicts: such requests are answered 409, or 503 if they only read';
    case 'number too large':
    case 'text not storable':
      return 'The database cannot store a number or a text of a request: the request is answered 400';
    default:
      return undefined;
  }
}

/** Creates an `Outages` for a database that can be reached at the moment. */
export function openOutages(logger: Logger): Outages {
  let sinceMs: number | undefined;
  /** When a failure of some requests only was logged last, by its line. */
  const failedMs = new Map<string, number>();
  return {
    notice: (error) => {
      const line = lineOf(error);
      if (line !== undefined) {
        const nowMs = performance.now();
        if (nowMs - (failedMs.get(line) ?? Number.NEGATIVE_INFINITY) > repeatedAfterMs) {
          logger.warn({ reason: failureOf(error) }, line);
        }
        failedMs.set(line, nowMs);
        // This failure has a line of its own, since an outage often begins with another reason, such as broken connections.
        if (failureKind(error) === 'access refused') sinceMs ??= nowMs;
        return true;
      }
      if (!isUnavailable(error)) return false;
      if (sinceMs === undefined) {
        sinceMs = performance.now();
        logger.warn(
          { reason: failureOf(error) },
          'The database cannot be reached: requests are answered 503 until it can',
        );
      }
      return true;
    },
    answered: (sentMs) => {
      // The answer to a query from before the failure does not prove that the database can be reached again.
      if (sinceMs === undefined || sentMs <= sinceMs) return;
      const seconds = Math.round((performance.now() - sinceMs) / 100) / 10;
      sinceMs = undefined;
      logger.info({ seconds }, 'The database can be reached again');
    },
  };
}

/** Where work in the background reports that it failed. */
export type Reported = { readonly logger: Pick<Logger, 'info' | 'warn'>; readonly outages: Outages };

/** A function that logs an error of work that is done again soon, unless the work only lost a lock or a race, or the database is unavailable. */
export const reporting =
  ({ logger, outages }: Reported, line: string) =>
  (error: unknown): void => {
    if (isLockRefused(error) || isLostRace(error)) return;
    if (!isTimedOut(error) && outages.notice(error)) return;
    logger.warn({ err: error }, line);
  };
