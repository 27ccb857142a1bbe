import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { isUnavailable } from '../../db/sqlstate.ts';
import { readChanges } from './changes.ts';
import { createFleet, type Fleet } from './fleet.ts';
import { forgetForeignChanges } from './foreign_changes.ts';
import { loadFleet } from './load.ts';

/** Keeps one fleet true to the database. */
export type FleetKeeper = {
  /** The fleet with everything that was committed before this call. Calls that wait share one round trip. */
  fresh(): Promise<Fleet>;
  /** The fleet as it was last seen: good for what a guarded statement proves afterwards. */
  readonly known: Fleet;
  /** The snapshot that `known` shows. */
  readonly snapshot: string;
  /** How often the fleet was brought up to date, and how often loaded whole. */
  readonly counts: { readonly refreshes: number; readonly loads: number };
};

/** Loads the fleet and returns its keeper. */
export async function openFleet(database: Database): Promise<FleetKeeper> {
  const load = async () => {
    await forgetForeignChanges(database);
    const loaded = await loadFleet(database);
    counts.loads++;
    return { living: createFleet(loaded), snapshot: loaded.snapshot };
  };
  const counts = { refreshes: 0, loads: 0 };
  let { living, snapshot } = await load();

  /** Whether the database was away since: what comes back may be a standby that lacks what the fleet has seen. */
  let lostSight = false;
  const refresh = async (): Promise<Fleet> => {
    const changes = await repeatLostRaces(() => readChanges(database, snapshot)).catch((error: unknown) => {
      lostSight ||= isUnavailable(error);
      throw error;
    });
    counts.refreshes++;
    if (changes.reload || lostSight) {
      ({ living, snapshot } = await load());
      lostSight = false;
    } else {
      living.apply(changes);
      snapshot = changes.snapshot;
    }
    return living.fleet;
  };

  let running = false;
  /** The refresh after the one under way, for all who have asked since that began. */
  let next: PromiseWithResolvers<Fleet> | undefined;
  const start = (): Promise<Fleet> => {
    running = true;
    const refreshed = refresh();
    // The next begins before anybody hears of this one: whoever asks again at once must not begin a second beside it, since
    // both would take over the same changes.
    const end = (): void => {
      running = false;
      const waited = next;
      next = undefined;
      waited?.resolve(start());
    };
    refreshed.then(end, end);
    return refreshed;
  };

  return {
    fresh: () => {
      // A refresh under way may have begun before this call, so it is the one after it that is shared.
      if (!running) return start();
      next ??= Promise.withResolvers();
      return next.promise;
    },
    get known() {
      return living.fleet;
    },
    get snapshot() {
      return snapshot;
    },
    counts,
  };
}
