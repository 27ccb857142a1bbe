import type { PlacementService } from '../../src/start/service.ts';

/**
 * Runs something after a request has read the fleet and before it writes.
 *
 * @param refresh the number of the refresh, counted from 1
 */
export function afterRefresh({ fleet }: PlacementService, refresh: number, meanwhile: () => Promise<unknown>): void {
  const { fresh } = fleet;
  let refreshes = 0;
  fleet.fresh = async () => {
    const shown = await fresh();
    refreshes += 1;
    if (refreshes !== refresh) return shown;
    fleet.fresh = fresh;
    await meanwhile();
    return shown;
  };
}
