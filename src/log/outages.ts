import type { Logger } from 'pino';
import { failureOf } from '../../db/engine/failure_of.ts';
import { isOutOfRoom, isUnavailable } from '../../db/engine/sqlstate.ts';

/**
 * Logs once when the database cannot be reached, and once when it can again, however many requests fail meanwhile.
 * Also logs once when the database answers that it has no disk or memory left.
 */
export type Outages = {
  /**
   * Takes note of an error. @returns whether it means that the database cannot be reached, or has no room; then the
   * caller need not log it
   */
  notice(error: unknown): boolean;
  /** Takes note of an answer of the database. @param askedMs when the query was sent, by `performance.now()` */
  answered(askedMs: number): void;
};

/** An error for lack of room is logged again if this time has passed since the last one. */
const roomAgainMs = 60_000;

/** Creates an `Outages` for a database that can be reached at the moment. */
export function openOutages(logger: Logger): Outages {
  let sinceMs: number | undefined;
  let outOfRoomMs = Number.NEGATIVE_INFINITY;
  return {
    notice: (error) => {
      if (isOutOfRoom(error)) {
        const nowMs = performance.now();
        if (nowMs - outOfRoomMs > roomAgainMs) {
          logger.warn(
            { reason: failureOf(error) },
            'The database has no disk or memory left, or cannot use its files: requests that need them are answered 503',
          );
        }
        outOfRoomMs = nowMs;
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
