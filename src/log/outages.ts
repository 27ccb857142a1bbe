import type { Logger } from 'pino';
import {
  CommitsUnconfirmed,
  failureOf,
  isLockRefused,
  isLostRace,
  isOutOfRoom,
  isPreparedElsewhere,
  isReadOnly,
  isUnavailable,
  NoIdLeft,
} from '../../db/engine/failures.ts';

/**
 * Logs once when the database cannot be reached, and once when it can again, however many requests fail meanwhile.
 * Also logs once when the database answers that it has no disk or memory left, has no id for a new row, or takes no writes, or when a pooler
 * does not carry prepared statements.
 */
export type Outages = {
  /**
   * Takes note of an error. @returns whether it is one of these failures;
   * then the caller need not log it
   */
  notice(error: unknown): boolean;
  /** Takes note of an answer of the database. @param askedMs when the query was sent, by `performance.now()` */
  answered(askedMs: number): void;
};

/** An error that does not concern all requests is logged again if this time has passed since the last one of its kind. */
const againMs = 60_000;
const outOfRoom =
  'The database has no disk or memory left, or cannot use its files: requests that need them are answered 503';
const readOnly =
  'The database is read-only: it is a standby, or default_transaction_read_only is on. Writes are answered 503';

const noIdLeft =
  'A table has no id left for a new row: requests that need one are answered 503. "placement-status upgrade check" has the remedy';

const preparedElsewhere =
  'A pooler in transaction mode does not carry prepared statements: requests that meet that are answered 503. Set [placement_database] ' +
  'prepared_statements = false and restart; or give PgBouncer, 1.21 or newer, a max_prepared_statements above 0';

const unconfirmed =
  'The database does not confirm commits: its synchronous standby may be gone. Writes are answered 503 until it does';

/** What is logged of an error that does not concern all requests; undefined for other errors. */
function lineOf(error: unknown): string | undefined {
  if (error instanceof CommitsUnconfirmed) return unconfirmed;
  if (isOutOfRoom(error)) return outOfRoom;
  if (isReadOnly(error)) return readOnly;
  if (isPreparedElsewhere(error)) return preparedElsewhere;
  return error instanceof NoIdLeft ? noIdLeft : undefined;
}

/** Creates an `Outages` for a database that can be reached at the moment. */
export function openOutages(logger: Logger): Outages {
  let sinceMs: number | undefined;
  /** When requests last failed for a reason that does not concern all of them. */
  const failedMs = new Map<string, number>();
  return {
    notice: (error) => {
      const line = lineOf(error);
      if (line !== undefined) {
        const nowMs = performance.now();
        if (nowMs - (failedMs.get(line) ?? Number.NEGATIVE_INFINITY) > againMs) {
          logger.warn({ reason: failureOf(error) }, line);
        }
        failedMs.set(line, nowMs);
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
    answered: (askedMs) => {
      // The answer to a query from before the failure does not prove that the database can be reached again.
      if (sinceMs === undefined || askedMs <= sinceMs) return;
      const seconds = Math.round((performance.now() - sinceMs) / 100) / 10;
      sinceMs = undefined;
      logger.info({ seconds }, 'The database can be reached again');
    },
  };
}

/** Where work in the background reports that it failed. */
export type Reported = { readonly logger: Pick<Logger, 'info' | 'warn'>; readonly outages: Outages };

/** A function that logs an error of work that is done again soon, unless the work only lost a lock or a race, or the database is away. */
export const reporting =
  ({ logger, outages }: Reported, line: string) =>
  (error: unknown): void => {
    if (isLockRefused(error) || isLostRace(error) || outages.notice(error)) return;
    logger.warn({ err: error }, line);
  };
