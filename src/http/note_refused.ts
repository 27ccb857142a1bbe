import type { Logger } from 'pino';
import type { Metrics } from '../metrics/metrics.ts';
import type { Refused } from './server/refusals.ts';

/** Logs and counts what the server refuses before the app gets it, which logs and counts all else. */
export const noteRefused =
  (logger: Logger, metrics: Metrics | undefined) =>
  (refused: Refused): void => {
    metrics?.refused(refused.reason);
    logger.info(refused, 'refused');
  };
