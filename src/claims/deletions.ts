import type { Database } from '../../db/engine/connect.ts';
import { deleteAllocations } from '../../db/statements/claims/delete_allocations.ts';
import { inBatches } from '../batching/batches.ts';
import { awaitLock, consumerLock, findLocked, tablesOfDeletionsLock } from './locks.ts';

/** Deletes all that consumers have; deletions that are asked for while one is under way go together in the next. */
export type Deletions = {
  /** @returns how many allocations the consumer had. */
  delete(consumerUuid: string): Promise<number>;
};

/** How many consumers one transaction takes: their rows stay locked until all of them are gone. */
const batchLimit = 64;

/** A consumer that another transaction holds keeps only those deletions waiting that are of the same consumer. */
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
        const counts = await deleteAllocations(database, uuids, wait);
        for (const { item, resolve } of batch) resolve(counts.get(item) ?? 0);
      },
    ),
  };
}
