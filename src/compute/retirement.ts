import type { Logger } from 'pino';
import type { Database } from '../../db/connect.ts';
import { retireServices } from '../../db/statements/delete_service.ts';

const everyMs = 60_000;

/**
 * Deletes services that were not heard of for `[compute] retire_after` seconds, once a minute. Every process does; that harms
 * nobody.
 *
 * @returns a function that stops it.
 */
export function retireSilentServices(database: Database, afterSeconds: number, logger: Logger): () => Promise<void> {
  if (afterSeconds === 0) return async () => {};
  let running: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    running = retireServices(database, afterSeconds).then(
      (retired) => {
        for (const { host, binary } of retired) logger.info({ host, binary }, 'A silent service was retired');
      },
      (error: unknown) => logger.warn({ err: error }, 'Silent services could not be retired; it is tried again later'),
    );
  }, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
