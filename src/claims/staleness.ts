import type { FleetKeeper } from '../fleet/keeper.ts';

/** Whether the fleet may lack something that claims are judged by. */
export type Staleness = {
  isSuspected(): boolean;
  /** Notes that something was found that the fleet does not show, or may not: it is read anew before the next batch. */
  suspect(): void;
  /** Reads what changed; what is suspected meanwhile is for the next time. */
  bringUpToDate(): Promise<void>;
};

/** Nothing is suspected at first. */
export function watchForStaleness(fleet: Pick<FleetKeeper, 'fresh'>): Staleness {
  let suspected = false;
  return {
    isSuspected: () => suspected,
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
