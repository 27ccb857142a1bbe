import type { ConsumerState } from '../../db/statements/claims/read_consumers.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Inventory } from '../fleet/provider.ts';
import { ClaimRefused } from './claim.ts';
import type { Judged } from './effects.ts';
import type { Refused } from './give_refusals.ts';
import { judge } from './judge.ts';
import { type BatchedClaim, onFreshFleet } from './pending_claim.ts';

/** What becomes of the claims of a batch. One that fails by a fault, or must be judged again, is settled at once, and in none of these. */
export type JudgedBatch = {
  readonly judged: readonly Judged[];
  /** Refused by a fresh fleet. */
  readonly refused: readonly Refused[];
  /** Whether one was refused by a picture that may have been old, so that the fleet must be fresh when it is judged again. */
  readonly isFleetSuspected: boolean;
};

/** Judges a batch in order, each claim with what those before it promised to take. */
export function judgeBatch(
  fleet: Fleet,
  batch: readonly BatchedClaim[],
  states: ReadonlyMap<string, ConsumerState>,
): JudgedBatch {
  const promised = new Map<Inventory, number>();
  const judged: Judged[] = [];
  const refused: Refused[] = [];
  let isFleetSuspected = false;
  for (const entry of batch) {
    const { item } = entry;
    try {
      const { demands, ...write } = judge(fleet, item.claim, states, promised);
      // What a claim frees is not promised to others: it may lose its guards, and they would be over capacity.
      for (const { inventory, freed, wanted } of demands) {
        if (inventory !== undefined && wanted > freed) {
          promised.set(inventory, (promised.get(inventory) ?? 0) + wanted - freed);
        }
      }
      judged.push({ entry, write, demands });
    } catch (error) {
      if (!(error instanceof ClaimRefused)) entry.reject(error);
      else if (item.judgedOn === 'known fleet') {
        isFleetSuspected = true;
        entry.again(onFreshFleet(item));
      }
      // Others of the batch were promised what it wants, and may lose their guards yet: it is judged before the next.
      else if (promised.size > 0) entry.again();
      else refused.push({ entry, refusal: error });
    }
  }
  return { judged, refused, isFleetSuspected };
}
