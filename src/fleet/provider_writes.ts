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

const providerOf = ({ providerId }: ProviderWrite) => providerId;

export function openProviderWrites(database: Database, fleet: FleetKeeper): ProviderWrites {
  const write = (writes: readonly ProviderWrite[]) => repeatLostRaces(() => writeProviders(database, writes));
  const writeAlone = async (one: ProviderWrite): Promise<Fleet | undefined> =>
    (await write([one])).has(one) ? fleet.fresh() : undefined;
  return {
    perform: inBatches(database, { limit: batchLimit, concerns: providerOf }, async (writes) => {
      let done: ReadonlySet<ProviderWrite>;
      try {
        done = await write(writes);
      } catch (error) {
        // Whether they were done is not known where the database went away.
        if (writes.length === 1 || isUnavailable(error)) throw error;
        // Together they fail for the sake of one, which the others, and the next batch, need not wait for again.
        return writeAlone;
      }
      const shown = done.size > 0 ? await fleet.fresh() : undefined;
      return (one) => (done.has(one) ? shown : undefined);
    }),
  };
}
