import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { type ConsumerAllocationRow, readAllocations } from '../../db/statements/read_allocations.ts';
import { type ProviderAllocationRow, readProviderAllocations } from '../../db/statements/read_provider_allocations.ts';
import { isStorable } from '../../db/storable.ts';
import { inBatches } from '../turns/batches.ts';

/** Reads allocations as they are in the database; reads that are asked for while one is under way go together in the next. */
export type AllocationReads = {
  /** What a consumer has, in the order in which it was written. */
  ofConsumer(uuid: string): Promise<readonly ConsumerAllocationRow[]>;
  /** What is allocated on a provider, in the order in which it was written; no row where there is no such provider. */
  onProvider(uuid: string): Promise<readonly ProviderAllocationRow[]>;
};

/** How many consumers or providers one statement reads: a provider may have thousands of allocations, for which all would wait. */
const batchLimit = 32;

/** Reads that lost a deadlock with a migration are repeated. */
export function openAllocationReads(database: Database): AllocationReads {
  const ofConsumer = inBatches(database, { limit: batchLimit }, async (uuids: readonly string[]) =>
    grouped(await repeatLostRaces(() => readAllocations(database, wanted(uuids))), (row) => row.consumer_uuid),
  );
  const onProvider = inBatches(database, { limit: batchLimit }, async (uuids: readonly string[]) =>
    grouped(await repeatLostRaces(() => readProviderAllocations(database, wanted(uuids))), (row) => row.provider_uuid),
  );
  return { ofConsumer, onProvider };
}

const wanted = (uuids: readonly string[]): string[] => [...new Set(uuids)].filter(isStorable);

function grouped<Row>(rows: readonly Row[], uuidOf: (row: Row) => string): (uuid: string) => readonly Row[] {
  const groups = Map.groupBy(rows, uuidOf);
  return (uuid) => groups.get(uuid) ?? [];
}
