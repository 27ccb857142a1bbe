import type { Database } from '../../../db/engine/connect.ts';
import { isFaultOfOne, repeatLostRaces } from '../../../db/engine/failures.ts';
import { awaitProviderId, findLockedProviders } from '../../../db/statements/locked_rows.ts';
import {
  changedIdOf,
  lockedIdOf,
  type ProviderWrite,
  writeProviders,
} from '../../../db/statements/providers/provider_write.ts';
import type { FleetKeeper } from '../../fleet/keep/keeper.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { inBatches } from '../../queue/queue.ts';

/** Writes providers and their parts. Writes that come while a batch is under way share the next transaction. */
export type ProviderWrites = {
  /**
   * Call it without an `await` after the judgement: the present snapshot of the fleet is noted as the one that the write was judged by.
   *
   * @returns the fleet, which shows the write; undefined if the write lost a guard
   * @throws the database error of the write
   */
  perform(write: ProviderWrite): Promise<Fleet | undefined>;
};

/** The largest number of writes in one transaction: their providers stay locked until it ends. */
const batchLimit = 64;

/** Opens the queue of writes of providers. Writes that come at the same time are written in one transaction. */
export function openProviderWrites(database: Database, fleet: FleetKeeper): ProviderWrites {
  const keysOf = (id: number | undefined): string[] => (id === undefined ? [] : [String(id)]);
  const perform = inBatches<ProviderWrite, Fleet | undefined>(
    database,
    {
      limit: batchLimit,
      conflictKeysOf: (write) => keysOf(changedIdOf(write)),
      locksOf: (write) => keysOf(lockedIdOf(write)),
      isOfOne: isFaultOfOne,
      findLocked: async (writes) => {
        const ids = writes.flatMap((write) => lockedIdOf(write) ?? []);
        return (await findLockedProviders(database, ids)).map(String);
      },
      awaitLock: (id, wait) => awaitProviderId(Number(id))(database, wait),
    },
    async (batch, wait) => {
      const writes = batch.map(({ item }) => item);
      const done = await repeatLostRaces(() => writeProviders(database, writes, wait));
      const providers = [...done.values()];
      const [first] = providers;
      const isShown = first !== undefined && fleet.applyOwnWrite({ xid: first.xid, effects: [], providers });
      const shown = isShown || first === undefined ? fleet.known : fleet.fresh();
      for (const { item, resolve } of batch) resolve(done.has(item) ? shown : undefined);
      // The next batch waits for a refresh, and also gets the writes that arrive meanwhile.
      await Promise.allSettled([shown]);
    },
  );
  return {
    perform: (write) => perform('providerId' in write ? { ...write, judgedOn: fleet.snapshot } : write),
  };
}
