import { earlierGeneration, laterGeneration } from '../../../db/statements/rows.ts';
import { type Fleet, noteChange } from './fleet.ts';
import { inventoryOf } from './provider.ts';

/** A committed write of this process that the fleet shows before a refresh reads it. */
export type OwnWrite = {
  /** The transaction, as PostgreSQL's text form of `xid8`. */
  readonly xid: string;
  readonly effects: readonly Effect[];
};

/** By how much a write raised the generation of a provider, and its usages by class id. */
export type Effect = {
  readonly providerId: number;
  readonly bump: number;
  readonly used: readonly { readonly classId: number; readonly delta: number }[];
};

/** Adds the effects of a write to the fleet, or removes them. */
export function showEffects(fleet: Fleet, { effects }: Pick<OwnWrite, 'effects'>, sign: 1 | -1): void {
  for (const { providerId, bump, used } of effects) {
    const provider = fleet.byId.get(providerId);
    if (provider === undefined) continue;
    provider.generation = (sign === 1 ? laterGeneration : earlierGeneration)(provider.generation, bump);
    noteChange(fleet, provider);
    for (const { classId, delta } of used) {
      const inventory = inventoryOf(provider, classId);
      if (inventory !== undefined) inventory.used += sign * delta;
    }
  }
}
