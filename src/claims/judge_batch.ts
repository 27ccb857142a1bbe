import type { Leeway } from '../../db/statements/claims/claim_guards.ts';
import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { type CountedWrite, type ProjectUsage, usageKey } from '../../db/statements/claims/project_usages.ts';
import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { openOverlay } from '../fleet/model/overlay.ts';
import { type Effect, showEffects } from '../fleet/model/own_writes.ts';
import { type Inventory, inventoryOf } from '../fleet/model/provider.ts';
import { exactCapacity } from '../placement/inventory.ts';
import {
  type Claim,
  ClaimRefused,
  cancelled,
  isByQuery,
  lostTooOften,
  type Placement,
  type Precedence,
} from './claim.ts';
import { judge } from './judge.ts';
import type { UsageChange } from './judge_capacity.ts';
import { allCount, type CountingOptions, limitGuards, projectUsageChangesOf } from './limits.ts';
import { type BatchedClaim, noteChosen, onFreshFleet, type PendingClaim } from './pending_claim.ts';

/** The claims of a batch, by the next step for each. No claim is settled yet. */
type JudgedBatch = {
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

/**
 * Judges the claims of a batch in order. The amounts that a claim takes count as used for later claims. The amounts that a claim
 * frees do not count as free: if the claim loses its guards, claims that took the freed amounts would exceed the capacity.
 */
export function judgeBatch(
  fleet: Fleet,
  batch: readonly BatchedClaim[],
  states: ReadonlyMap<string, ConsumerState>,
  { counting = allCount, haveOwners = true }: JudgedBy = {},
): JudgedBatch {
  const judged: Judged[] = [];
  const refused: Refused[] = [];
  const again: { entry: BatchedClaim; item: PendingClaim }[] = [];
  const failed: { entry: BatchedClaim; error: unknown }[] = [];
  let isFleetSuspected = false;
  const { isCounting } = fleet.limits;
  const raised = sumOfRaises();
  const promised = openOverlay(fleet);
  let isAnyPromised = false;
  let steps = 0;
  const onSteps = (taken: number): void => {
    steps += taken;
  };
  const precedences = followPrecedence();
  for (const entry of batch) {
    const { item } = entry;
    if (item.claim.precedence?.isCancelled()) {
      failed.push({ entry, error: cancelled() });
      continue;
    }
    if (precedences.mustYield(item)) {
      again.push({ entry, item: { ...item, yields: item.yields + 1 } });
      continue;
    }
    // The searches have blocked the process for long enough: other requests come first.
    if (steps > mostSteps && isByQuery(item.claim)) {
      again.push({ entry, item });
      continue;
    }
    // The counting of usages began after the consumers were read without their owners.
    if (isCounting && !haveOwners && item.readsConsumers) {
      again.push({ entry, item });
      continue;
    }
    try {
      const isCertain = item.judgedOn === 'fresh fleet' && !isAnyPromised;
      const { avoided } = item.choice;
      const options = { isCertain, avoided, onSteps };
      const { usageChanges, placement, ...write } = judge(fleet, item.claim, states, options);
      if (placement !== undefined) noteChosen(item, placement);
      const taken = usageChanges.flatMap(({ provider, classId, inventory, freed, wanted }) =>
        inventory === undefined || wanted <= freed ? [] : [{ provider, classId, amount: wanted - freed }],
      );
      promised.add(taken);
      isAnyPromised ||= taken.length > 0;
      const counted = isCounting
        ? raised.counted(fleet, item.claim, projectUsageChangesOf(write.consumers, states), counting)
        : undefined;
      const { precedence } = item.claim;
      const inOrder = precedence === undefined ? write : { ...write, inOrder: true, waitingRow: precedence.waitingRow };
      const ofAll = counted === undefined ? inOrder : { ...inOrder, counted };
      judged.push({ entry, write: ofAll, usageChanges, placement });
      precedences.noteJudged(item);
    } catch (error) {
      if (!(error instanceof ClaimRefused)) failed.push({ entry, error });
      else if (item.judgedOn === 'known fleet') {
        isFleetSuspected = true;
        again.push({ entry, item: onFreshFleet(item) });
      }
      // Claims ahead in the batch may be the reason, and may still lose their guards. So this claim is judged again in the next batch.
      else if (isAnyPromised) again.push({ entry, item });
      else {
        refused.push({ entry, refusal: error });
        precedences.noteJudged(item);
      }
    }
  }
  promised.hide();
  return { judged, refused, again, failed, isFleetSuspected };
}

/** After this number of batches a claim no longer waits for earlier claims, except for an equal claim that no locked row holds up. */
const mostYields = 200;

/** Keeps the order of arrival among the claims of a batch that have waited. */
function followPrecedence() {
  const judged = new Set<Precedence>();
  return {
    mustYield: ({ claim: { precedence }, yields }: PendingClaim): boolean =>
      precedence?.isBehind(judged, yields < mostYields) === true,
    noteJudged({ claim: { precedence } }: PendingClaim): void {
      if (precedence !== undefined) judged.add(precedence);
    },
  };
}

/** What a batch is judged by, in addition to the fleet and the allocations of its consumers. */
type JudgedBy = {
  readonly counting?: CountingOptions;
  /** Whether the owners of the consumers were read; without owners it is unknown from which project a claim takes something. */
  readonly haveOwners?: boolean;
};

/** Sums up by how much the claims of a batch may raise the limited usages. Reductions do not count: a claim may lose its guards. */
function sumOfRaises() {
  const sums = new Map<string, number>();
  return {
    counted(
      fleet: Fleet,
      { isReshape }: Claim,
      usages: readonly ProjectUsage[],
      options: CountingOptions,
    ): CountedWrite {
      const guards = isReshape ? [] : limitGuards(fleet, usages, options);
      const limits = guards.map((guard) => {
        const key = usageKey(guard);
        const ahead = sums.get(key) ?? 0;
        sums.set(key, ahead + guard.raise);
        return { ...guard, ahead };
      });
      return { usages, limits };
    },
  };
}

/** After this number of steps, some 20 ms, the claims by query that are left wait for the next batch. */
const mostSteps = 400_000;

/** A claim that the fleet allows, and what it changes. */
export type Judged = {
  readonly entry: BatchedClaim;
  readonly write: ClaimWrite;
  readonly usageChanges: readonly UsageChange[];
  /** Of a claim with consumers by query. */
  readonly placement: Placement | undefined;
};

/**
 * Whether the effects of a claim are all that it changes. Inventories that a claim replaces are not among its effects: a
 * refresh reads them.
 */
export const canBeApplied = ({ write }: Judged): boolean => write.inventories.length === 0;

/**
 * The effects of a claim, which the fleet shows as soon as the claim is written, before the next refresh. There is one effect for each
 * provider, since an effect of three classes takes no longer than an effect of one.
 */
export function effectsOf({ write, usageChanges }: Judged): readonly Effect[] {
  const effects = new Map<number, { providerId: number; bump: number; used: { classId: number; delta: number }[] }>();
  const effectOn = (providerId: number) => {
    const effect = effects.get(providerId) ?? { providerId, bump: 0, used: [] };
    effects.set(providerId, effect);
    return effect;
  };
  for (const { providerId, bump } of write.providers) effectOn(providerId).bump += bump;
  for (const { provider, classId, wanted, freed } of usageChanges) {
    effectOn(provider.id).used.push({ classId, delta: wanted - freed });
  }
  return [...effects.values()];
}

/**
 * How much capacity the claims leave in the inventories that they take from. Other transactions may take this capacity meanwhile.
 *
 * @param fleet as it is now: the inventories of claims that were judged ahead are older
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

/** Whether the known fleet may be stale. */
export type Staleness = {
  isSuspected(): boolean;
  /**
   * Notes that the database has, or may have, something that the known fleet does not show. The next batch needs a
   * refresh.
   */
  suspect(): void;
  /** Refreshes the fleet. A call of `suspect` during the refresh counts for the next batch. */
  bringUpToDate(): Promise<void>;
};

/** At first the fleet is not suspected. */
export function watchForStaleness(fleet: Pick<FleetKeeper, 'fresh' | 'isInDoubt'>): Staleness {
  let suspected = false;
  return {
    isSuspected: () => suspected || fleet.isInDoubt(),
    suspect: () => {
      suspected = true;
    },
    bringUpToDate: async () => {
      suspected = false;
      try {
        await fleet.fresh();
      } catch (error) {
        suspected = true;
        throw error;
      }
    },
  };
}

/** How claims are repeated that lost a race. */
export type LostRaceOptions = {
  /** How often a claim that lost a race is judged again before it is refused. */
  readonly conflictRetryCount: number;
  /** Called for each repetition. */
  readonly onRetry?: () => void;
};

/**
 * Puts a claim back to be judged again, because another request has changed data that the claim was judged by; refuses a claim
 * that has lost too often.
 *
 * @param item the claim in the form that replaces it
 * @param prepare what it waits for before it is judged again
 */
export function judgeAgain(
  entry: BatchedClaim,
  item: PendingClaim,
  { conflictRetryCount, onRetry }: LostRaceOptions,
  prepare?: () => Promise<unknown>,
): void {
  if (item.lostRaces >= conflictRetryCount) {
    entry.reject(lostTooOften());
    return;
  }
  onRetry?.();
  entry.again({ ...item, lostRaces: item.lostRaces + 1 }, prepare?.());
}

/** A claim that a fresh fleet does not allow, and the reason. */
export type Refused = { readonly entry: BatchedClaim; readonly refusal: ClaimRefused };

/**
 * A claim with this number of consumers by query, or more, is judged ahead: judging such a claim takes about as long as
 * writing it. A smaller claim is better written together with claims that come later.
 */
const fewestPlaced = 16;

/** Judges the next batch while a batch is being written, as if all claims of that batch were written already. */
type JudgeAhead = {
  /** Whether the judgement of a claim takes so long that it should be made ahead. */
  isWorthIt(claim: PendingClaim): boolean;
  /** Judges a batch ahead. @returns false where it cannot be judged ahead, or where one of its claims is not allowed */
  prepare(batch: readonly BatchedClaim[]): boolean;
  /** The claims as `prepare` judged them, if the batch before was written as expected; undefined if the batch must be judged now. */
  outcomeFor(batch: readonly BatchedClaim[]): readonly Judged[] | undefined;
  /**
   * Notes that claims are being written.
   *
   * @param isWhole whether `judged` are all claims of their batch; the other claims are retried before any other batch
   * @returns a function to be called after the write, with whether all of the claims were written and the known fleet shows them
   */
  noteWrite(judged: readonly Judged[], isWhole: boolean): (isAsExpected: boolean) => void;
};

/** A batch that is being written, by which the next one may be judged. */
type Premise = { readonly judged: readonly Judged[]; canServe: boolean; isAsExpected: boolean };

type Prepared = {
  readonly batch: readonly BatchedClaim[];
  readonly judged: readonly Judged[];
  readonly premise: Premise;
  readonly fleet: Fleet;
  readonly snapshot: FleetKeeper['snapshot'];
};

/** Call it while no claim is being written. */
export function openJudgeAhead(
  fleet: FleetKeeper,
  staleness: Pick<Staleness, 'isSuspected'>,
  counting: CountingOptions,
): JudgeAhead {
  /** More than one batch if a batch takes long or is repeated in parts. */
  const underWay = new Set<Premise>();
  /** The batch whose write began last. */
  let latest: Premise | undefined;
  let prepared: Prepared | undefined;
  return {
    isWorthIt: ({ claim: { placing = [] } }) => placing.length >= fewestPlaced,
    prepare: (batch) => {
      const [premise] = underWay;
      const isKnown = premise !== undefined && underWay.size === 1 && premise.canServe && !staleness.isSuspected();
      if (!isKnown || !batch.every(canBeAhead)) return false;
      // Once is enough: a claim that fits nowhere now would fit nowhere again before that batch is written.
      premise.canServe = false;
      const { known, snapshot } = fleet;
      const written = { effects: premise.judged.flatMap(effectsOf) };
      showEffects(known, written, 1);
      try {
        const { judged } = judgeBatch(known, batch, new Map(), { counting });
        if (judged.length < batch.length) return false;
        prepared = { batch, judged, premise, fleet: known, snapshot };
        return true;
      } finally {
        showEffects(known, written, -1);
      }
    },
    outcomeFor: (batch) => {
      const ahead = prepared;
      if (ahead?.batch !== batch) return undefined;
      prepared = undefined;
      // A refresh may have shown writes of other transactions.
      const isSame = ahead.fleet === fleet.known && ahead.snapshot === fleet.snapshot && !staleness.isSuspected();
      const isOnlyOne = ahead.premise === latest && underWay.size === 0;
      return isSame && isOnlyOne && ahead.premise.isAsExpected ? ahead.judged : undefined;
    },
    noteWrite: (judged, isWhole) => {
      const premise = { judged, canServe: isWhole && judged.every(canBeApplied), isAsExpected: false };
      latest = premise;
      underWay.add(premise);
      return (isAsExpected) => {
        premise.isAsExpected = isAsExpected;
        underWay.delete(premise);
      };
    },
  };
}

/** Whether a claim can be judged at once: its consumers need not be read, and the fleet need not be refreshed. */
const canBeAhead = ({ item }: BatchedClaim): boolean =>
  item.judgedOn === 'known fleet' &&
  !item.readsConsumers &&
  item.claim.inventories.length === 0 &&
  item.claim.precedence === undefined;
