import type { PlacementService } from '../../src/start/service.ts';

/**
 * Runs something after a request has read the fleet and before it writes.
 *
 * @param look the number of the read, counted from 1
 */
export function afterLook({ fleet }: PlacementService, look: number, meanwhile: () => Promise<unknown>): void {
  const { fresh } = fleet;
  let looks = 0;
  fleet.fresh = async () => {
    const shown = await fresh();
    looks += 1;
    if (looks !== look) return shown;
    fleet.fresh = fresh;
    await meanwhile();
    return shown;
  };
}
