import type { Logger } from 'pino';
import type { Database } from '../../../db/engine/connect.ts';
import { pruneChanges } from '../../../db/fleet/prune_changes.ts';

/**
 * Deletes old rows of the change log from time to time. Every process does so; pruning more than once is harmless.
 *
 * @param keepMs changes are kept for one to two times this long; a process that could not refresh for longer loads everything
 *   afterwards
 * @param beside what is looked at as often
 * @returns a function that stops it.
 */
export function pruneFromTimeToTime(
  database: Database,
  logger: Logger,
  keepMs: number,
  beside: () => Promise<void> = async () => {},
): () => Promise<void> {
  let oldest: string | undefined;
  let running: Promise<void> = Promise.resolve();
  let stopped = false;
  const timer = setInterval(() => {
    running = pruneChanges(database, oldest, () => stopped)
      .then(
        (xmin) => {
          oldest = xmin;
        },
        (error: unknown) => logger.warn({ err: error }, 'The change log could not be pruned; it is tried again later'),
      )
      .then(beside);
  }, keepMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stopped = true;
    await running;
  };
}
