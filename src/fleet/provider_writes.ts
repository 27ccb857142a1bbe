import { type Database, isDatabaseError } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { isTimedOut, isUnavailable } from '../../db/sqlstate.ts';
import { type ProviderWrite, writeProviders } from '../../db/statements/provider_write.ts';
import { inBatches } from '../turns/batches.ts';
import type { Fleet } from './fleet.ts';
import type { FleetKeeper } from './keeper.ts';

/** Writes providers and their parts; what is asked for while a write is under way goes together in the next transaction. */
export type ProviderWrites = {
  /**
   * @returns the fleet, which shows it; undefined where it was not done
   * @throws what the write throws, of the database.
   */
  perform(write: ProviderWrite): Promise<Fleet | undefined>;
};

/** How many writes one transaction takes: their providers stay locked until all of them are done. */
const batchLimit = 64;

/** Each batch is followed by a refresh, which the next one waits for. */
export function openProviderWrites(database: Database, fleet: FleetKeeper): ProviderWrites {
  const concerns = ({ lockedId }: ProviderWrite): unknown => lockedId;
  return {
    perform: inBatches(database, { limit: batchLimit, concerns, isOfOne }, async (writes) => {
      const done = await repeatLostRaces(() => writeProviders(database, writes));
      const shown = done.size > 0 ? fleet.fresh() : undefined;
      // The next batch waits for it as well: beside it, they were smaller and cost the database half as much again. That it
      // failed is told to each and not thrown, since what was done must not be done once more.
      await Promise.allSettled([shown]);
      return (write) => (done.has(write) ? shown : undefined);
    }),
  };
}

/**
 * Whether an error is the fault of one of several writes: a name that is taken, a lock that somebody holds. Not where the database
 * went away, since nobody knows then whether they were done; nor where it took too long: several wait for locks only briefly, so
 * that the database is slow for all of them.
 */
const isOfOne = (error: unknown): boolean => isDatabaseError(error) && !isUnavailable(error) && !isTimedOut(error);
