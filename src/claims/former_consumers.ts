import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import { forgetFormerConsumers } from '../../db/statements/consumers/forget_former.ts';

/** The longest time between two searches, in milliseconds. */
const longestPauseMs = 3_600_000;

/**
 * Forgets consumers that were removed long ago, from time to time. Every process does so; doing it more than once is
 * harmless.
 *
 * @param keepSeconds how long former consumers are remembered, at least
 * @returns a function that stops it, and resolves when its last statement has ended
 */
export function forgetFromTimeToTime(database: Database, logger: Logger, keepSeconds: number): () => Promise<void> {
  let stopped = false;
  let running: Promise<void> | undefined;
  const search = async (): Promise<void> => {
    let place: string | undefined = '';
    while (place !== undefined && !stopped) {
      const startedMs = performance.now();
      place = await forgetFormerConsumers(database, place, keepSeconds);
      // Among millions of former consumers, requests have the database for most of the time.
      if (place !== undefined) await sleep(4 * (performance.now() - startedMs));
    }
  };
  const timer = setInterval(
    () => {
      running ??= search()
        .catch((error: unknown) => {
          logger.warn({ err: error }, 'Former consumers could not be forgotten; it is tried again later');
        })
        .finally(() => {
          running = undefined;
        });
    },
    Math.min(longestPauseMs, (keepSeconds * 1000) / 2),
  );
  timer.unref();
  return async () => {
    clearInterval(timer);
    stopped = true;
    await running;
  };
}
