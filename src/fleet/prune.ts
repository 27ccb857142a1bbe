import type { Logger } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import { pruneChanges } from '../../db/fleet/prune_changes.ts';

/**
 * Changes are kept for one to two times this long. A process that could not refresh for longer loads everything
 * afterwards.
 */
const keepMs = 10 * 60_000;

/**
 * Deletes old rows of the change log from time to time. Every process does so; pruning more than once is harmless.
 *
 * @returns a function that stops it.
 */
export function pruneFromTimeToTime(database: Database, logger: Logger): () => Promise<void> {
  let oldest: string | undefined;
  let running: Promise<void> = Promise.resolve();
  let stopped = false;
  const timer = setInterval(() => {
    running = pruneChanges(database, oldest, () => stopped).then(
      (xmin) => {
        oldest = xmin;
      },
      (error: unknown) => logger.warn({ err: error }, 'The change log could not be pruned; it is tried again later'),
    );
  }, keepMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stopped = true;
    await running;
  };
}
