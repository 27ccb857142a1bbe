import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { isTimedOut, isUnavailable } from '../../db/sqlstate.ts';
import { type ProviderWrite, writeProviders } from '../../db/statements/provider_write.ts';
import { inBatches, type Told } from '../batches.ts';
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

const lockedBy = ({ lockedId }: ProviderWrite) => lockedId;

const lockTheSame = ([first, ...others]: readonly ProviderWrite[]): boolean =>
  first?.lockedId !== undefined && others.every(({ lockedId }) => lockedId === first.lockedId);

export function openProviderWrites(database: Database, fleet: FleetKeeper): ProviderWrites {
  const write = (writes: readonly ProviderWrite[]) => repeatLostRaces(() => writeProviders(database, writes));
  const writeAlone = async (one: ProviderWrite): Promise<Fleet | undefined> =>
    (await write([one])).has(one) ? fleet.fresh() : undefined;
  return {
    perform: inBatches(database, { limit: batchLimit, concerns: lockedBy }, async (writes) => {
      let done: ReadonlySet<ProviderWrite>;
      try {
        done = await write(writes);
      } catch (error) {
        // Whether they were done is not known where the database went away.
        if (writes.length === 1 || isUnavailable(error)) throw error;
        if (isTimedOut(error) && lockTheSame(writes)) throw error;
        // Together they fail for the sake of one, which the others, and the next batch, need not wait for again.
        return oneByOne(writeAlone);
      }
      const shown = done.size > 0 ? await fleet.fresh() : undefined;
      return (one) => (done.has(one) ? shown : undefined);
    }),
  };
}

/**
 * Does each write by itself, those that lock the same provider one after the other, since each takes a connection. Where one
 * waited for the lock in vain, those behind it do not wait once more.
 */
function oneByOne<Result>(writeAlone: (write: ProviderWrite) => Promise<Result>): Told<ProviderWrite, Result> {
  const latest = new Map<number, Promise<Result>>();
  return (write) => {
    const { lockedId } = write;
    if (lockedId === undefined) return writeAlone(write);
    const next = (): Promise<Result> => writeAlone(write);
    const written =
      latest.get(lockedId)?.then(next, (error: unknown) => {
        if (isTimedOut(error)) throw error;
        return next();
      }) ?? next();
    latest.set(lockedId, written);
    return written;
  };
}
