import type { Database } from '../../db/connect.ts';
import { deleteAllocations } from '../../db/statements/delete_allocations.ts';
import { onBehalfOf, type RequestIds, requestsServed } from '../request_ids.ts';

/** Deletes all that consumers have; deletions that are asked for while one is under way go together in the next. */
export type Deletions = {
  /** @returns how many allocations the consumer had. */
  delete(consumerUuid: string): Promise<number>;
};

type Waiting = {
  readonly uuid: string;
  readonly askedBy: readonly RequestIds[];
  readonly resolve: (count: number) => void;
  readonly reject: (error: unknown) => void;
};

/** How many consumers one transaction takes: their rows stay locked until all of them are gone. */
const batchLimit = 64;

export function openDeletions(database: Database): Deletions {
  let queue: Waiting[] = [];
  let running = false;

  const deleteBatch = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const uuids = new Set(batch.map(({ uuid }) => uuid));
      const counts = new Map(await deleteAllocations(database, [...uuids]));
      for (const { uuid, resolve } of batch) {
        resolve(counts.get(uuid) ?? 0);
        // Of two who delete the same, the second finds nothing.
        counts.delete(uuid);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  const run = async (): Promise<void> => {
    running = true;
    while (queue.length > 0) {
      await database.turn();
      const batch = queue.slice(0, batchLimit);
      queue = queue.slice(batchLimit);
      const askedBy = batch.flatMap((waiting) => waiting.askedBy);
      await onBehalfOf(askedBy, () => deleteBatch(batch));
    }
    running = false;
  };

  return {
    delete: (uuid) =>
      new Promise((resolve, reject) => {
        queue.push({ uuid, askedBy: requestsServed(), resolve, reject });
        if (!running) void run();
      }),
  };
}
