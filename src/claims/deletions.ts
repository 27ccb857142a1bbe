import type { Database } from '../../db/engine/connect.ts';
import { deleteAllocations } from '../../db/statements/claims/delete_allocations.ts';
import { inBatches } from '../queue/queue.ts';
import { awaitLock, consumerLock, findLocked, tablesOfDeletionsLock } from './claims.ts';

/**
 * Deletes all allocations of consumers. Deletions that are requested while one is under way share the next transaction.
 */
export type Deletions = {
  /** @returns how many allocations the consumer had. */
  delete(consumerUuid: string): Promise<number>;
};

/** How many consumers one transaction deletes. Their rows stay locked until all of them are deleted. */
const batchLimit = 64;

/** If another transaction has locked a consumer, only deletions of this consumer wait for it. */
export function openDeletions(database: Database): Deletions {
  return {
    delete: inBatches<string, number>(
      database,
      {
        limit: batchLimit,
        orderOf: (uuid) => [consumerLock(uuid)],
        sharedLock: tablesOfDeletionsLock,
        findLocked: (uuids) => findLocked(database, { consumers: uuids, providers: [] }, tablesOfDeletionsLock),
        awaitLock: (key, wait) => awaitLock(database, key, wait),
      },
      async (batch, wait) => {
        const uuids = batch.map(({ item }) => item);
        // What one transaction has deleted is done, also where the next one fails and its consumers are tried again.
        const settle = (counts: ReadonlyMap<string, number>): void => {
          for (const { item, resolve } of batch) {
            const count = counts.get(item);
            if (count !== undefined) resolve(count);
          }
        };
        const counts = await deleteAllocations(database, uuids, wait, settle);
        for (const { item, resolve } of batch) if (!counts.has(item)) resolve(0);
      },
    ),
  };
}
