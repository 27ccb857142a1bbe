import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { isUnavailable } from '../../db/sqlstate.ts';
import { type ProviderWrite, writeProviders } from '../../db/statements/provider_write.ts';
import { inBatches } from '../batches.ts';
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

type Outcome = { readonly isDone: boolean } | { readonly error: unknown };

export function openProviderWrites(database: Database, fleet: FleetKeeper): ProviderWrites {
  /** Those that cannot be done together are done one by one, so that each fails by itself. */
  const outcomesOf = async (writes: readonly ProviderWrite[]): Promise<ReadonlyMap<ProviderWrite, Outcome>> => {
    try {
      const done = await repeatLostRaces(() => writeProviders(database, writes));
      return new Map(writes.map((write) => [write, { isDone: done.has(write) }]));
    } catch (error) {
      if (writes.length === 1) return new Map(writes.map((write) => [write, { error }]));
      // Whether it was done is not known then.
      if (isUnavailable(error)) throw error;
      const alone = await Promise.all(writes.map((write) => outcomesOf([write])));
      return new Map(alone.flatMap((outcomes) => [...outcomes]));
    }
  };

  return {
    perform: inBatches(database, batchLimit, async (writes: readonly ProviderWrite[]) => {
      const outcomes = await outcomesOf(writes);
      const isAnyDone = [...outcomes.values()].some((outcome) => 'isDone' in outcome && outcome.isDone);
      const shown = isAnyDone ? await fleet.fresh() : undefined;
      return (write) => {
        const outcome = outcomes.get(write) ?? { isDone: false };
        if ('error' in outcome) throw outcome.error;
        return outcome.isDone ? shown : undefined;
      };
    }),
  };
}
