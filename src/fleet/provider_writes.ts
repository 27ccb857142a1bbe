import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/lost_race.ts';
import { isLockRefused } from '../../db/engine/slow_lane.ts';
import { isFaultOfOne } from '../../db/engine/sqlstate.ts';
import { awaitProviderId, findLockedProviders } from '../../db/statements/claims/locked_rows.ts';
import {
  type ProviderWrite,
  ProviderWriteFailed,
  writeProviders,
} from '../../db/statements/providers/provider_write.ts';
import { type Entry, inBatches } from '../batching/batches.ts';
import type { Fleet } from './fleet.ts';
import type { FleetKeeper } from './keeper.ts';

/** Writes providers and their parts. Writes that come while a batch is under way share the next transaction. */
export type ProviderWrites = {
  /**
   * @returns the fleet, which shows the write; undefined if it was not done
   * @throws the database error of the write.
   */
  perform(write: ProviderWrite): Promise<Fleet | undefined>;
};

/** How many writes one transaction takes: their providers stay locked until all of them are done. */
const batchLimit = 64;

/** After each batch the fleet is refreshed; the next batch waits for the refresh. */
export function openProviderWrites(database: Database, fleet: FleetKeeper): ProviderWrites {
  const idsOf = ({ lockedId }: ProviderWrite): number[] => (lockedId === undefined ? [] : [lockedId]);
  return {
    perform: inBatches<ProviderWrite, Fleet | undefined>(
      database,
      {
        limit: batchLimit,
        locksOf: (write) => idsOf(write).map(String),
        isOfOne: isFaultOfOne,
        findLocked: async (writes) => (await findLockedProviders(database, writes.flatMap(idsOf))).map(String),
        awaitLock: (id, wait) => awaitProviderId(Number(id))(database, wait),
      },
      async (batch, wait) => {
        let done: ReadonlySet<ProviderWrite>;
        try {
          const writes = batch.map(({ item }) => item);
          done = await repeatLostRaces(() => writeProviders(database, writes, wait));
        } catch (error) {
          rejectFailed(batch, error);
          return;
        }
        const shown = done.size > 0 ? fleet.fresh() : undefined;
        for (const { item, resolve } of batch) resolve(done.has(item) ? shown : undefined);
        // The next batch waits for the refresh: without this, batches were smaller and cost the database half as much
        // again.
        await Promise.allSettled([shown]);
      },
    ),
  };
}

/**
 * Rejects the write that failed, and repeats the others.
 *
 * @throws an error that concerns all writes, and the refusal of a lock
 */
function rejectFailed(batch: readonly Entry<ProviderWrite, Fleet | undefined>[], error: unknown): void {
  if (!(error instanceof ProviderWriteFailed)) throw error;
  // Many writes of a batch may be refused a lock. If they were found one by one here, all other writes would wait for
  // that.
  if (isLockRefused(error.cause)) throw error.cause;
  for (const { item, again } of batch) if (item !== error.write) again();
  for (const { item, reject } of batch) if (item === error.write) reject(error.cause);
}
