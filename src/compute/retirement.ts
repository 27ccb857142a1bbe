import type { Logger } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import { retireServices } from '../../db/statements/services/delete_service.ts';

/** How often silent services are searched for, in milliseconds. */
const everyMs = 60_000;

/**
 * Deletes services that sent no heartbeat for `[compute] retire_after` seconds, once a minute. Every process does this;
 * several at once do no harm.
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
      (error: unknown) =>
        logger.warn({ err: error }, 'Silent services could not be retired; the next attempt is in a minute'),
    );
  }, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
