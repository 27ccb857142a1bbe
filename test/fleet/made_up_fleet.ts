import { type FleetRows, type NameRows, pageOf } from '../../db/fleet/rows.ts';
import { buildFleet, type LivingFleet } from '../../src/fleet/model/fleet.ts';

/** All rows that a database would have for a deployment. */
export type AllRows = FleetRows & NameRows;

/** The fleet of a deployment that does not exist in a database. */
export function createFleet(rows: AllRows): LivingFleet {
  const growing = buildFleet(rows, 'no server');
  growing.add(pageOf(rows));
  return growing.finish();
}
