import type { ConsumerState } from '../../db/statements/claims/read_consumers.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Inventory } from '../fleet/provider.ts';
import { suppose } from '../fleet/supposed.ts';
import { ClaimRefused, isByQuery } from './claim.ts';
import { effectsByProvider, type Judged } from './effects.ts';
import type { Refused } from './give_refusals.ts';
import { judge } from './judge.ts';
import type { UsageChange } from './judge_capacity.ts';
import { type BatchedClaim, noteTried, onFreshFleet, type PendingClaim } from './pending_claim.ts';

/** The claims of a batch, by what comes next. None of them is settled. */
export type JudgedBatch = {
  /** Claims that can be written. */
  readonly judged: readonly Judged[];
  /** Claims that a fresh fleet does not allow. */
  readonly refused: readonly Refused[];
  /** Claims that must be judged again, in the form that replaces them. */
  readonly again: readonly { readonly entry: BatchedClaim; readonly item: PendingClaim }[];
  /** Claims whose judgement failed with an error of the program. */
  readonly failed: readonly { readonly entry: BatchedClaim; readonly error: unknown }[];
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
  const judged: Judged[] = [];
  const refused: Refused[] = [];
  const again: { entry: BatchedClaim; item: PendingClaim }[] = [];
  const failed: { entry: BatchedClaim; error: unknown }[] = [];
  let isFleetSuspected = false;
  const promised = trackPromisedUsage(fleet, batch);
  let looks = 0;
  const onLooks = (taken: number): void => {
    looks += taken;
  };
  for (const entry of batch) {
    const { item } = entry;
    // The searches have blocked the process for long enough: other requests come first.
    if (looks > mostLooks && isByQuery(item.claim)) {
      again.push({ entry, item });
      continue;
    }
    try {
      const isCertain = item.judgedOn === 'fresh fleet' && !promised.areAny();
      const { avoided } = item.tried;
      const options = { isCertain, avoided, onLooks };
      const { usageChanges, placement, ...write } = judge(fleet, item.claim, states, promised.taken, options);
      if (placement !== undefined) noteTried(item, placement);
      promised.add(usageChanges);
      judged.push({ entry, write, usageChanges, placement });
    } catch (error) {
      if (!(error instanceof ClaimRefused)) failed.push({ entry, error });
      else if (item.judgedOn === 'known fleet') {
        isFleetSuspected = true;
        again.push({ entry, item: onFreshFleet(item) });
      }
      // Claims before it in the batch may be the reason, and may still lose their guards. So it is judged again in the
      // next batch.
      else if (promised.areAny()) again.push({ entry, item });
      else refused.push({ entry, refusal: error });
    }
  }
  promised.end();
  return { judged, refused, again, failed, isFleetSuspected };
}

/** After this number of looks, some 20 ms, the claims by query that are left wait for the next batch. */
const mostLooks = 400_000;

/** The usage that the claims of a batch add which are judged so far. */
type PromisedUsage = {
  /** By inventory, the part of it that the fleet does not show. */
  readonly taken: ReadonlyMap<Inventory, number>;
  readonly areAny: () => boolean;
  /** What a claim frees is not counted: if the claim loses its guards, others that took it would exceed the capacity. */
  readonly add: (usageChanges: readonly UsageChange[]) => void;
  readonly end: () => void;
};

/** Searches see only what the fleet shows. So if the batch has a claim by query, the fleet shows the promised usage meanwhile. */
function trackPromisedUsage(fleet: Fleet, batch: readonly BatchedClaim[]): PromisedUsage {
  const taken = new Map<Inventory, number>();
  const supposition = batch.some(({ item }) => isByQuery(item.claim)) ? suppose(fleet) : undefined;
  let areAny = false;
  return {
    taken,
    areAny: () => areAny,
    add: (usageChanges) => {
      const effects = effectsByProvider();
      for (const { provider, classId, inventory, freed, wanted } of usageChanges) {
        if (inventory === undefined || wanted <= freed) continue;
        areAny = true;
        const delta = wanted - freed;
        if (supposition === undefined) taken.set(inventory, (taken.get(inventory) ?? 0) + delta);
        else effects.use(provider.id, classId, delta);
      }
      supposition?.add(effects.all());
    },
    end: () => supposition?.end(),
  };
}
