import type { Database } from '../../db/connect.ts';
import { hasSqlstate, sqlstate } from '../../db/sqlstate.ts';
import { deleteAllocations } from '../../db/statements/delete_allocations.ts';
import { inBatches } from '../turns/batches.ts';

/** Deletes all that consumers have; deletions that are asked for while one is under way go together in the next. */
export type Deletions = {
  /** @returns how many allocations the consumer had. */
  delete(consumerUuid: string): Promise<number>;
};

/** How many consumers one transaction takes: their rows stay locked until all of them are gone. */
const batchLimit = 64;

/** A consumer that somebody holds keeps only those waiting who delete the same. */
export function openDeletions(database: Database): Deletions {
  const concerns = (uuid: string): unknown => uuid;
  const isOfOne = (error: unknown): boolean => hasSqlstate(error, sqlstate.lockNotAvailable);
  return {
    delete: inBatches(database, { limit: batchLimit, concerns, isOfOne }, async (uuids) => {
      const counts = new Map(await deleteAllocations(database, [...new Set(uuids)]));
      return (uuid) => {
        const count = counts.get(uuid) ?? 0;
        // Of two who delete the same, the second finds nothing.
        counts.delete(uuid);
        return count;
      };
    }),
  };
}
