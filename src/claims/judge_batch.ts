import type { ConsumerState } from '../../db/statements/claims/read_consumers.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Inventory } from '../fleet/provider.ts';
import { ClaimRefused } from './claim.ts';
import type { Judged } from './effects.ts';
import type { Refused } from './give_refusals.ts';
import { judge } from './judge.ts';
import { type BatchedClaim, onFreshFleet } from './pending_claim.ts';

/**
 * The claims of a batch, by what comes next. Claims that were put back into the queue, or whose judgement failed with
 * an error of the program, are in none of the lists.
 */
export type JudgedBatch = {
  /** Claims that can be written. */
  readonly judged: readonly Judged[];
  /** Claims that a fresh fleet does not allow. */
  readonly refused: readonly Refused[];
  /**
   * Whether the known fleet, which may be stale, did not allow a claim. The fleet must be refreshed before the next
   * batch.
   */
  readonly isFleetSuspected: boolean;
};

/** Judges the claims of a batch in order. What a claim is to take counts as used for the claims after it. */
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
      // What a claim frees is not available to the others: if it loses a guard, nothing is freed, and they would exceed
      // the capacity.
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
      // Claims before it in the batch may be the reason, and may still lose their guards. So it is judged again in the
      // next batch.
      else if (promised.size > 0) entry.again();
      else refused.push({ entry, refusal: error });
    }
  }
  return { judged, refused, isFleetSuspected };
}
