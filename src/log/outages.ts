import type { Logger } from 'pino';
import { failureOf } from '../../db/reach.ts';
import { isUnavailable } from '../../db/sqlstate.ts';

/** Tells the log once when the database cannot be reached, and once when it can again, however many requests ask meanwhile. */
export type Outages = {
  /** Takes note of an error. @returns whether it says that the database cannot be reached: then nothing is left to log of it. */
  notice(error: unknown): boolean;
  /** Takes note of an answer of the database. @param askedMs when it was asked, by `performance.now()` */
  answered(askedMs: number): void;
};

/** Begins with a database that can be reached. */
export function openOutages(logger: Logger): Outages {
  let sinceMs: number | undefined;
  return {
    notice: (error) => {
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
      // What was asked before the failure was noticed proves nothing.
      if (sinceMs === undefined || askedMs <= sinceMs) return;
      const seconds = Math.round((performance.now() - sinceMs) / 100) / 10;
      sinceMs = undefined;
      logger.info({ seconds }, 'The database can be reached again');
    },
  };
}
