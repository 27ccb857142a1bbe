import type { ConsumerState } from '../../db/statements/read_consumers.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Inventory } from '../fleet/provider.ts';
import { ClaimRefused } from './claim.ts';
import type { Judged } from './effects.ts';
import type { Refused } from './give_refusals.ts';
import { judge } from './judge.ts';
import { suspected, type Waiting } from './waiting.ts';

/** What becomes of the claims of a batch; one that fails by a fault is told so at once, and is in none of these. */
export type JudgedBatch = {
  readonly judged: readonly Judged[];
  /** Refused by a fresh fleet. */
  readonly refused: readonly Refused[];
  /** To be judged again with the next batch. */
  readonly again: readonly Waiting[];
  /** Whether one was refused by a picture that may have been old, so that the fleet must be fresh when it is judged again. */
  readonly isFleetSuspected: boolean;
};

/** Judges a batch in order, each claim with what those before it promised to take. */
export function judgeBatch(
  fleet: Fleet,
  batch: readonly Waiting[],
  states: ReadonlyMap<string, ConsumerState>,
): JudgedBatch {
  const promised = new Map<Inventory, number>();
  const judged: Judged[] = [];
  const refused: Refused[] = [];
  const again: Waiting[] = [];
  let isFleetSuspected = false;
  for (const waiting of batch) {
    try {
      const { demands, ...write } = judge(fleet, waiting.claim, states, promised);
      // What a claim frees is not promised to others: it may lose its guards, and they would be over capacity.
      for (const { inventory, freed, wanted } of demands) {
        if (inventory !== undefined && wanted > freed) {
          promised.set(inventory, (promised.get(inventory) ?? 0) + wanted - freed);
        }
      }
      judged.push({ waiting, write, demands });
    } catch (error) {
      if (!(error instanceof ClaimRefused)) waiting.reject(error);
      else if (!waiting.refusedOnce) {
        isFleetSuspected = true;
        again.push(suspected(waiting));
      }
      // Others of the batch were promised what it wants, and may lose their guards yet: it is judged before the next.
      else if (promised.size > 0) again.push(waiting);
      else refused.push({ waiting, refusal: error });
    }
  }
  return { judged, refused, again, isFleetSuspected };
}
