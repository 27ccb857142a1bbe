import { inBackground, rest } from '../../db/engine/background.ts';
import type { Database } from '../../db/engine/connect.ts';
import { type Deleted, deleteAllocations } from '../../db/statements/claims/delete_allocations.ts';
import {
  firstPosition,
  forgetFormerConsumers,
  haveTermsEnded,
  type RemovedConsumer,
  removeEnded,
  type TermPosition,
} from '../../db/statements/consumers/remove_ended.ts';
import type { Effect, OwnWrite } from '../fleet/model/own_writes.ts';
import { type Reported, reporting } from '../log/outages.ts';
import { withName } from '../placement/uuid.ts';
import { inBatches } from '../queue/queue.ts';
import { timeText } from '../text/strings.ts';
import { awaitLock, consumerLock, findLocked, tablesOfDeletionsLock } from './claim_locks.ts';

/**
 * Deletes all allocations of consumers. Deletions that are requested while one is under way share the next transaction.
 */
export type Deletions = {
  /** @returns how many allocations the consumer had. */
  delete(consumerUuid: string): Promise<number>;
};

/** How many consumers one transaction deletes. Their rows stay locked until all of them are deleted. */
const deletedAtOnce = 64;

type DeletionOptions = {
  /** Whether usages are counted, as far as the process knows. */
  readonly isCounting?: () => boolean;
  /** Called with what each transaction has deleted. */
  readonly onReleased?: (write: OwnWrite) => void;
};

/** If another transaction has locked a consumer, only deletions of this consumer wait for it. */
export function openDeletions(
  database: Database,
  { isCounting = () => false, onReleased = () => {} }: DeletionOptions = {},
): Deletions {
  return {
    delete: inBatches<string, number>(
      database,
      {
        limit: deletedAtOnce,
        conflictKeysOf: (uuid) => [consumerLock(uuid)],
        sharedLock: tablesOfDeletionsLock,
        findLocked: (uuids) => findLocked(database, { consumers: uuids, providers: [] }, tablesOfDeletionsLock),
        awaitLock: (key, wait) => awaitLock(database, key, wait),
      },
      async (batch, wait) => {
        const uuids = batch.map(({ item }) => item);
        // The deletions of one transaction are final, also where the next transaction fails and its consumers are retried.
        const settle = ({ counts, xid, released }: Deleted): void => {
          if (xid !== undefined) onReleased({ xid, effects: effectsOf(released) });
          for (const { item, resolve } of batch) {
            const count = counts.get(item);
            if (count !== undefined) resolve(count);
          }
        };
        const counts = await deleteAllocations(database, uuids, wait, settle, isCounting());
        for (const { item, resolve } of batch) if (!counts.has(item)) resolve(0);
      },
    ),
  };
}

/** What the fleet shows of deleted allocations: one effect for each provider. */
const effectsOf = (released: Deleted['released']): readonly Effect[] =>
  [...Map.groupBy(released, ({ providerId }) => providerId)].map(([providerId, amounts]) => ({
    providerId,
    bump: 0,
    used: amounts.map(({ classId, used }) => ({ classId, delta: -used })),
  }));

/** The time between two searches for expired terms, in milliseconds. */
const everyMs = 500;

/** The largest number of consumers that one transaction removes. Their rows stay locked until its end. */
const removedAtOnce = 256;

/** Where the removal reports what it does. */
type RemovalOptions = Reported & {
  /** Called after each transaction with the number of consumers that it has removed. */
  readonly onRemoved?: (count: number) => void;
  /** Called after each search with how long ago the oldest term expired whose consumer still exists. */
  readonly onSearched?: (overdueSeconds: number) => void;
  /** Called with whether usages are counted, after each search. */
  readonly onCounting?: (isCounting: boolean) => void;
};

/**
 * Removes consumers soon after their terms have expired. Every process searches for expired terms; an advisory lock in the
 * database lets one process at a time remove consumers. A consumer that another program has locked is skipped, and retried
 * at the next search.
 *
 * @returns a function that stops the removal, and resolves when its last transaction has ended
 */
export function removeEndedConsumers(database: Database, options: RemovalOptions): () => Promise<void> {
  const { logger, outages, onRemoved, onSearched, onCounting } = options;
  return inBackground({
    everyMs,
    failed: reporting(options, 'Consumers whose terms have ended could not be removed; the next try is soon'),
    round: async (stopping) => {
      const sentMs = performance.now();
      const { overdueSeconds, isCounting } = await haveTermsEnded(database);
      outages.answered(sentMs);
      onCounting?.(isCounting);
      onSearched?.(overdueSeconds ?? 0);
      let position: TermPosition | undefined = overdueSeconds === null ? undefined : firstPosition;
      while (position !== undefined && !stopping.aborted) {
        const startedMs = performance.now();
        const { removed, next }: Awaited<ReturnType<typeof removeEnded>> = await removeEnded(
          database,
          position,
          removedAtOnce,
          isCounting,
        );
        for (const consumer of removed) logger.info(removalLine(consumer));
        onRemoved?.(removed.length);
        position = next;
        // When thousands of terms expire at the same time, half of the time of the database is left for claims.
        if (position !== undefined) await rest(performance.now() - startedMs, stopping);
      }
    },
  });
}

const removalLine = ({ uuid, name, projectId, userId, expired, allocations }: RemovedConsumer): string =>
  `Consumer ${withName(uuid, name)} of project ${projectId}, user ${userId} was removed with ${allocations} allocations: its term ended at ` +
  `${timeText(expired) ?? '-infinity'}.`;

/** The longest time between two searches, in milliseconds. */
const longestPauseMs = 3_600_000;

/**
 * Deletes the records of consumers that were removed long ago, from time to time. Every process does so; doing it more than
 * once is harmless.
 *
 * @param keepSeconds how long former consumers are remembered, at least
 * @returns a function that stops it, and resolves when its last statement has ended
 */
export const forgetFromTimeToTime = (
  database: Database,
  reported: Reported,
  keepSeconds: number,
): (() => Promise<void>) =>
  inBackground({
    everyMs: Math.min(longestPauseMs, (keepSeconds * 1000) / 2),
    failed: reporting(reported, 'Former consumers could not be forgotten; it is tried again later'),
    round: async (stopping) => {
      let position: string | undefined = '';
      while (position !== undefined && !stopping.aborted) {
        const startedMs = performance.now();
        position = await forgetFormerConsumers(database, position, keepSeconds);
        // Among millions of former consumers, requests have the database for most of the time.
        if (position !== undefined) await rest(4 * (performance.now() - startedMs), stopping);
      }
    },
  });
