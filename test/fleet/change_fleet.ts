import type { LivingFleet } from '../../src/fleet/model/fleet.ts';
import { showEffects } from '../../src/fleet/model/own_writes.ts';
import { type Change, changes } from '../candidates/random_change.ts';
import type { AllRows } from './made_up_fleet.ts';

/** Makes a change of a fleet as its keeper does. @returns the rows that the database has then */
export function changeFleet({ fleet, apply, detach }: LivingFleet, rows: AllRows, { kind, at, what }: Change): AllRows {
  const id = rows.providers[at % rows.providers.length]?.id;
  if (id === undefined) return rows;
  const [next, reported, ownWrite] = changes[kind](rows, id, what);
  if (ownWrite === undefined) {
    apply(reported);
    return next;
  }
  detach(ownWrite.effects);
  showEffects(fleet, ownWrite, 1);
  return next;
}
