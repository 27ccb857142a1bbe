import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import { isLockRefused } from '../../db/engine/slow_lane.ts';
import { isLostRace } from '../../db/engine/sqlstate.ts';
import {
  firstPlace,
  haveTermsEnded,
  type RemovedConsumer,
  removeEnded,
  type TermPlace,
} from '../../db/statements/consumers/remove_ended.ts';
import type { Outages } from '../log/outages.ts';

/** How often it is looked for terms that have ended, in milliseconds. */
const everyMs = 500;

/** How many consumers one transaction removes at most. Their rows stay locked until all of them are removed. */
const batchLimit = 256;

/** What the removal tells others. */
export type RemovalOptions = {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly outages: Outages;
  /** Called after each transaction with how many consumers it has removed. */
  readonly onRemoved?: (count: number) => void;
};

/**
 * Removes consumers soon after their terms have ended. Every process looks for them; a lock in the database lets one of them at a time
 * remove some. What one leaves out, since another program has locked it, is tried again at the next look.
 *
 * @returns a function that stops it, and resolves when no removal is under way.
 */
export function removeEndedConsumers(
  database: Database,
  { logger, outages, onRemoved }: RemovalOptions,
): () => Promise<void> {
  let stopped = false;
  let running: Promise<void> | undefined;
  const round = async (): Promise<void> => {
    const askedMs = performance.now();
    const areThere = await haveTermsEnded(database);
    outages.answered(askedMs);
    if (!areThere) return;
    let place: TermPlace | undefined = firstPlace;
    while (place !== undefined && !stopped) {
      const startedMs = performance.now();
      const { removed, next }: Awaited<ReturnType<typeof removeEnded>> = await removeEnded(database, place, batchLimit);
      for (const consumer of removed) logger.info(removalLine(consumer));
      onRemoved?.(removed.length);
      place = next;
      // Where thousands end at once, claims get half of the time.
      if (place !== undefined) await sleep(performance.now() - startedMs);
    }
  };
  const timer = setInterval(() => {
    running ??= round()
      .catch((error: unknown) => {
        if (isLockRefused(error) || isLostRace(error) || outages.notice(error)) return;
        logger.warn({ err: error }, 'Consumers whose terms have ended could not be removed; it is tried again at once');
      })
      .finally(() => {
        running = undefined;
      });
  }, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stopped = true;
    await running;
  };
}

const removalLine = ({ uuid, projectId, userId, expired, allocations }: RemovedConsumer): string =>
  `Consumer ${uuid} of project ${projectId}, user ${userId} was removed with ${allocations} allocations: its term ended at ` +
  `${expired.toISOString()}.`;
