import { buildFleet, type LivingFleet } from '../../src/fleet/fleet.ts';
import type { FleetRows, NameRows } from '../../src/fleet/rows.ts';

/** All that a database would have of a deployment. */
export type AllRows = FleetRows & NameRows;

/** The fleet of a deployment that was never in a database. */
export function createFleet(rows: AllRows): LivingFleet {
  const growing = buildFleet(rows);
  growing.add(rows);
  return growing.finish();
}
