import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import {
  type ConsumerAllocationRow,
  type ProviderAllocationRow,
  readAllocations,
  readProviderAllocations,
} from '../../db/statements/claims/read_allocations.ts';
import { inBatches } from '../queue/queue.ts';
import { isStorable } from '../text/strings.ts';

/** Reads allocations from the database. Reads that are requested while one is under way share the next statement. */
export type AllocationReads = {
  /** The allocations of a consumer, in the order in which they were written. */
  ofConsumer(uuid: string, options?: ReadOptions): Promise<readonly ConsumerAllocationRow[]>;
  /** The allocations of a provider, in the order in which they were written; none if there is no such provider. */
  onProvider(uuid: string, options?: ReadOptions): Promise<readonly ProviderAllocationRow[]>;
};

/** Whether to read also what only version 2 shows, which costs look-ups for each row. */
type ReadOptions = { readonly inFull: boolean };

/**
 * How many consumers or providers one statement reads. A provider may have thousands of allocations, and the whole
 * batch waits for them.
 */
const batchLimit = 32;

/** Opens the reads of a database. */
export function openAllocationReads(database: Database): AllocationReads {
  return {
    ofConsumer: readTogether(database, readAllocations, (row) => row.consumer_uuid),
    onProvider: readTogether(database, readProviderAllocations, (row) => row.provider_uuid),
  };
}

/** Reads in batches. A read that lost a deadlock, as with a migration, is repeated. */
function readTogether<Row>(
  database: Database,
  read: (database: Database, uuids: readonly string[], inFull: boolean) => Promise<readonly Row[]>,
  uuidOf: (row: Row) => string,
): (uuid: string, options?: ReadOptions) => Promise<readonly Row[]> {
  const reading = (inFull: boolean) =>
    inBatches<string, readonly Row[]>(database, { limit: batchLimit }, async (batch) => {
      const uuids = [...new Set(batch.map(({ item }) => item))].filter(isStorable);
      const all = await repeatLostRaces(() => read(database, uuids, inFull));
      // A shared pool has a hundred thousand rows, which are mostly read alone.
      const rows = uuids.length === 1 ? new Map(uuids.map((uuid) => [uuid, all])) : Map.groupBy(all, uuidOf);
      for (const { item, resolve } of batch) resolve(rows.get(item) ?? []);
    });
  const [plainly, inFull] = [reading(false), reading(true)];
  return (uuid, options) => (options?.inFull === true ? inFull : plainly)(uuid);
}
