import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { isUnavailable } from '../../db/sqlstate.ts';
import type { Moment } from '../../db/statements/change_log.ts';
import type { Outages } from '../log/outages.ts';
import { readChanges } from './changes.ts';
import type { Fleet } from './fleet.ts';
import { forgetForeignChanges } from './foreign_changes.ts';
import { loadFleet } from './load.ts';
import { type OwnWrite, sees, showEffects } from './own_writes.ts';
import { shareRefreshes } from './shared_refreshes.ts';

/** Keeps one fleet true to the database. */
export type FleetKeeper = {
  /** The fleet with everything that was committed before this call. Calls that wait share one round trip. */
  fresh(): Promise<Fleet>;
  /** The fleet as it was last seen: good for what a guarded statement proves afterwards. */
  readonly known: Fleet;
  /**
   * Shows a write of this process in `known` from now on, before any refresh: who writes next needs none. A refresh takes it
   * back and brings what was really written.
   */
  foresee(write: OwnWrite): void;
  /** The moment that `known` shows. */
  readonly moment: Moment;
  /** The transactions of the writes that it shows besides. */
  readonly foreseen: readonly string[];
  /** How often the fleet was brought up to date, and how often loaded whole. */
  readonly counts: { readonly refreshes: number; readonly loads: number };
  /** How long ago the fleet was true to the database, in seconds: since the last refresh that succeeded began. */
  ageSeconds(): number;
};

/** So many foreseen writes are followed by a refresh, though nobody asks for one: the change log must not be left behind. */
const foreseenLimit = 64;

/**
 * Loads the fleet and returns its keeper.
 *
 * @param outages is told whether the database could be reached
 */
export async function openFleet(database: Database, outages?: Outages): Promise<FleetKeeper> {
  const counts = { refreshes: 0, loads: 0 };
  const load = async () => {
    await forgetForeignChanges(database);
    const loaded = await repeatLostRaces(() => loadFleet(database)); // TRUNCATE may wait in a circle with it
    counts.loads++;
    return loaded;
  };
  let trueAtMs = performance.now();
  let { living, moment } = await load();

  /** The writes that `known` shows and that are not of its moment. */
  let foreseen: OwnWrite[] = [];

  /**
   * Whether the fleet must be loaded anew: the database was away, and what comes back may be a standby that lacks what the fleet
   * has seen; or changes were taken in by half.
   */
  let lostSight = false;
  const refresh = (): Promise<Fleet> =>
    bringUpToDate().catch((error: unknown) => {
      lostSight ||= isUnavailable(error);
      outages?.notice(error);
      throw error;
    });
  const bringUpToDate = async (): Promise<Fleet> => {
    const startedMs = performance.now();
    const changes = await repeatLostRaces(() => readChanges(database, moment));
    counts.refreshes++;
    if (changes.reload || lostSight) {
      // What was committed before is loaded, or was lost with a server.
      const committed = new Set(foreseen);
      ({ living, moment } = await load());
      foreseen = foreseen.filter((write) => !committed.has(write));
    } else {
      lostSight = true;
      for (const write of foreseen) showEffects(living.fleet, write, -1);
      living.apply(changes);
      moment = { ...moment, snapshot: changes.snapshot };
    }
    foreseen = foreseen.filter(({ xid }) => !sees(moment.snapshot, xid));
    for (const write of foreseen) showEffects(living.fleet, write, 1);
    lostSight = false;
    trueAtMs = startedMs;
    outages?.answered(startedMs);
    return living.fleet;
  };

  const refreshes = shareRefreshes(database, refresh);

  return {
    fresh: refreshes.next,
    foresee: (write) => {
      if (sees(moment.snapshot, write.xid)) return;
      foreseen.push(write);
      showEffects(living.fleet, write, 1);
      // Nobody waits for it: where the database is away, the next to ask will hear of it.
      if (foreseen.length >= foreseenLimit && !refreshes.isRunning()) refreshes.next().catch(() => {});
    },
    get known() {
      return living.fleet;
    },
    get moment() {
      return moment;
    },
    get foreseen() {
      return foreseen.map(({ xid }) => xid);
    },
    counts,
    ageSeconds: () => (performance.now() - trueAtMs) / 1000,
  };
}
