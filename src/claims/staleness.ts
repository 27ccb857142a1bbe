import type { FleetKeeper } from '../fleet/keeper.ts';

/** Whether the known fleet may be stale. */
export type Staleness = {
  isSuspected(): boolean;
  /**
   * Notes that the database has, or may have, something that the known fleet does not show. The next batch needs a
   * refresh.
   */
  suspect(): void;
  /** Refreshes the fleet. A suspicion that comes meanwhile stays for the next batch. */
  bringUpToDate(): Promise<void>;
};

/** At first the fleet is not suspected. */
export function watchForStaleness(fleet: Pick<FleetKeeper, 'fresh' | 'isInDoubt'>): Staleness {
  let suspected = false;
  return {
    isSuspected: () => suspected || fleet.isInDoubt(),
    suspect: () => {
      suspected = true;
    },
    bringUpToDate: async () => {
      suspected = false;
      try {
        await fleet.fresh();
      } catch (error) {
        suspected = true;
        throw error;
      }
    },
  };
}
