import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import type { Leeway } from '../../db/statements/claims/others_claims.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Effect } from '../fleet/own_writes.ts';
import { type Inventory, inventoryOf } from '../fleet/provider.ts';
import { exactCapacity } from '../placement/inventory.ts';
import type { UsageChange } from './judge_capacity.ts';
import type { BatchedClaim } from './pending_claim.ts';
import type { Placement } from './placing.ts';

/** A claim that the fleet allows, and what it changes. */
export type Judged = {
  readonly entry: BatchedClaim;
  readonly write: ClaimWrite;
  readonly usageChanges: readonly UsageChange[];
  /** Of a claim with consumers by query. */
  readonly placement: Placement | undefined;
};

/**
 * Whether the effects of a claim are all that it changes. Inventories that it replaces are not among them: a refresh
 * reads these.
 */
export const isForeseeable = ({ write }: Judged): boolean => write.inventories.length === 0;

/** What the fleet shows of a claim as soon as it is written, before the next refresh. */
export function effectsOf({ write, usageChanges }: Judged): readonly Effect[] {
  const effects = effectsByProvider();
  for (const { providerId, bump } of write.providers) effects.bump(providerId, bump);
  for (const { provider, classId, wanted, freed } of usageChanges) effects.use(provider.id, classId, wanted - freed);
  return effects.all();
}

/** Collects one effect for each provider: to show one takes as long for three classes as for one. */
export function effectsByProvider() {
  const effects = new Map<number, { providerId: number; bump: number; used: { classId: number; delta: number }[] }>();
  const effectOn = (providerId: number) => {
    let effect = effects.get(providerId);
    if (effect === undefined) {
      effect = { providerId, bump: 0, used: [] };
      effects.set(providerId, effect);
    }
    return effect;
  };
  return {
    bump: (providerId: number, by: number): void => {
      effectOn(providerId).bump += by;
    },
    use: (providerId: number, classId: number, delta: number): void => {
      effectOn(providerId).used.push({ classId, delta });
    },
    all: (): readonly Effect[] => [...effects.values()],
  };
}

/**
 * How much capacity the claims leave in the inventories that they take from. Other transactions may take it meanwhile.
 *
 * @param fleet as it is now: claims that were judged ahead have inventories of that time
 */
export function roomsOf(fleet: Fleet, judged: readonly Pick<Judged, 'usageChanges'>[]): Leeway['rooms'] {
  const rooms = new Map<Inventory, { providerId: number; classId: number; room: number }>();
  for (const { provider, classId, freed, wanted } of judged.flatMap(({ usageChanges }) => usageChanges)) {
    const present = fleet.byId.get(provider.id);
    const inventory = present && inventoryOf(present, classId);
    if (inventory === undefined || wanted === 0) continue;
    const known = rooms.get(inventory);
    const room = known?.room ?? exactCapacity(inventory.fields) - inventory.used;
    rooms.set(inventory, { providerId: provider.id, classId, room: room - Math.max(0, wanted - freed) });
  }
  return [...rooms.values()];
}
