import type { ConsumerState } from '../../db/statements/claims/read_consumers.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Inventory } from '../fleet/provider.ts';
import { suppose } from '../fleet/supposed.ts';
import { ClaimRefused, isByQuery } from './claim.ts';
import { effectsByProvider, type Judged } from './effects.ts';
import type { Refused } from './give_refusals.ts';
import { judge } from './judge.ts';
import type { Demand } from './judge_capacity.ts';
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
  const promises = openPromises(fleet, batch);
  let looks = 0;
  const onLooks = (taken: number): void => {
    looks += taken;
  };
  for (const entry of batch) {
    const { item } = entry;
    // Other requests are served before the searches go on.
    if (looks > mostLooks && isByQuery(item.claim)) {
      again.push({ entry, item });
      continue;
    }
    try {
      const isCertain = item.judgedOn === 'fresh fleet' && !promises.areAny();
      const { avoided } = item.tried;
      const options = { isCertain, avoided, onLooks };
      const { demands, placement, ...write } = judge(fleet, item.claim, states, promises.taken, options);
      if (placement !== undefined) noteTried(item, placement);
      promises.add(demands);
      judged.push({ entry, write, demands, placement });
    } catch (error) {
      if (!(error instanceof ClaimRefused)) failed.push({ entry, error });
      else if (item.judgedOn === 'known fleet') {
        isFleetSuspected = true;
        again.push({ entry, item: onFreshFleet(item) });
      }
      // Claims before it in the batch may be the reason, and may still lose their guards. So it is judged again in the
      // next batch.
      else if (promises.areAny()) again.push({ entry, item });
      else refused.push({ entry, refusal: error });
    }
  }
  promises.end();
  return { judged, refused, again, failed, isFleetSuspected };
}

/** After so many looks in one batch the searches that are left wait for the next one: they are some 50 ms. */
const mostLooks = 1_000_000;

/** What the claims of a batch take that are judged so far. */
type Promises = {
  /** What the fleet does not show of it. */
  readonly taken: ReadonlyMap<Inventory, number>;
  readonly areAny: () => boolean;
  /** What a claim frees is not promised to others: it may lose its guards, and they would be over capacity. */
  readonly add: (demands: readonly Demand[]) => void;
  readonly end: () => void;
};

/** Searches see what the fleet shows, so it shows what was promised where there is a claim by query. */
function openPromises(fleet: Fleet, batch: readonly BatchedClaim[]): Promises {
  const taken = new Map<Inventory, number>();
  const supposition = batch.some(({ item }) => isByQuery(item.claim)) ? suppose(fleet) : undefined;
  let areAny = false;
  return {
    taken,
    areAny: () => areAny,
    add: (demands) => {
      const effects = effectsByProvider();
      for (const { provider, classId, inventory, freed, wanted } of demands) {
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
