import { hasAnyTrait } from '../../fleet/model/filters.ts';
import { type Amount, type Overlay, openOverlay } from '../../fleet/model/overlay.ts';
import { type Provider, treeSize } from '../../fleet/model/provider.ts';
import { type Pieces, roundsPerLook, type Turns } from '../../request/turns.ts';
import { type Candidate, takenByProvider } from '../candidate.ts';
import { candidatesOf } from '../combinations.ts';
import { choiceAlone, granularProviders, isAlone, optionsByClass } from '../options.ts';
import type { Work } from '../request.ts';
import type { ResolvedGroup, ResolvedRequest } from '../resolve.ts';
import type { Sharing } from '../sharing.ts';
import { mostAt } from './bound.ts';
import { type Bounded, mostTeams } from './pairing.ts';
import { timesAt, timesOfGroup } from './room.ts';

/** What one consumer takes with a candidate. If several groups take the same class of one provider, their sum. */
function takesOf(candidate: Candidate): readonly Amount[] {
  const takes: Amount[] = [];
  for (const [provider, amounts] of takenByProvider(candidate)) {
    for (const [classId, amount] of amounts) takes.push({ provider, classId, amount });
  }
  return takes;
}

/** How many consumers can each take this at the same time. */
const timesOf = (takes: readonly Amount[]): number =>
  takes.reduce(
    (times, { provider, classId, amount }) => Math.min(times, timesAt(provider, classId, amount)),
    Number.POSITIVE_INFINITY,
  );

/**
 * Does work that places consumers in an overlay. In the pauses of the work, and after its end, the overlay is hidden, so that no other
 * request sees the consumers. A count reads the inventories and keeps nothing with the trees, so the fleet need not follow.
 */
export function* inOverlay<Result>(act: (overlay: Overlay) => Pieces<Result>): Pieces<Result> {
  const overlay = openOverlay();
  const work = act(overlay);
  for (;;) {
    overlay.show();
    let step: ReturnType<typeof work.next>;
    try {
      step = work.next();
    } finally {
      overlay.hide();
    }
    if (step.done) return step.value;
    yield undefined;
  }
}

/** Counts how many consumers fit into trees. */
export type TreeCounter = {
  /** How many fit into a tree if nothing is placed in other trees. The search for more may stop at `max`. Most trees need no pieces. */
  alone(anchor: Provider, max: number): Bounded | Pieces<Bounded>;
  /** Places as many consumers as fit in the first way that is found, then in the next one, and so on. */
  readonly fill: Filling;
  /** Places consumers one by one, each in the way for which the providers have most room. */
  readonly spread: Filling;
};

/** Places consumers in a tree, up to `max`, until it finds no place for one more. @returns how many */
export type Filling = (anchor: Provider, max: number, overlay: Overlay) => Pieces<number>;

/** How many looks one search at one tree may take, so that a hard tree does not use up the budget of the others. */
const mostLooksAtTree = 200_000;
/** When consumers are placed one by one, this number of ways is compared for each of them. */
const mostWays = 16;
/** If `fill` does not reach the upper bound, and the bound is not above this, `spread` is tried as well. */
export const mostOneByOne = 200;

/**
 * @param work how many looks all trees may take together
 * @param turns those after which the work at a tree pauses
 */
export function treeCounter(
  request: ResolvedRequest,
  sharing: Sharing,
  work: Work,
  turns: Turns | undefined,
): TreeCounter {
  const atTree: Work = { looks: 0 };
  const candidatesAt = candidatesOf(request, sharing, 'steady', { work: atTree });
  const [only, another] = request.groups;
  const group = another === undefined ? only : undefined;

  const ways = (anchor: Provider, most: number): readonly (readonly Amount[])[] => {
    const granted = Math.min(work.looks, mostLooksAtTree);
    atTree.looks = granted;
    const found: (readonly Amount[])[] = [];
    const take = (candidate: Candidate): boolean => found.push(takesOf(candidate)) >= most;
    for (const candidate of candidatesAt(anchor)) if (candidate !== undefined && take(candidate)) break;
    work.looks -= granted - atTree.looks + request.groups.length * treeSize(anchor);
    return found;
  };

  const counted: Counted = { request, sharing, work, atTree, turns, ways };
  return {
    fill: (anchor, max, overlay) => fill(counted, anchor, max, overlay),
    spread: (anchor, max, overlay) => spread(counted, anchor, max, overlay),
    alone: (anchor, max) => {
      const usable = sharing.usableBy(anchor);
      if (group === undefined) return bySearch(counted, anchor, max, { count: 0, exact: false });
      if (group.granular) {
        const providers = granularProviders(group, anchor, usable, 'steady');
        return { count: providers.reduce((sum, provider) => sum + timesOfGroup(provider, group), 0), exact: true };
      }
      if (isAlone(anchor, usable)) {
        return { count: choiceAlone(group, anchor) === undefined ? 0 : timesOfGroup(anchor, group), exact: true };
      }
      const teams = ofGroupWithoutSuffix(group, anchor, usable);
      return teams.exact ? teams : bySearch(counted, anchor, max, teams);
    },
  };
}

/** What is counted, and with what work. */
type Counted = {
  readonly request: ResolvedRequest;
  readonly sharing: Sharing;
  readonly work: Work;
  /** The part of the work that may be done at the tree. */
  readonly atTree: Work;
  readonly turns: Turns | undefined;
  /** The first ways to place a consumer in a tree, up to `most`. */
  ways(anchor: Provider, most: number): readonly (readonly Amount[])[];
};

/** @param first the first way, if it is known */
function* fill(
  { work, turns, ways }: Counted,
  anchor: Provider,
  max: number,
  overlay: Overlay,
  first?: readonly Amount[],
): Pieces<number> {
  let placed = 0;
  let takes = first;
  while (placed < max && work.looks > 0) {
    if (turns?.isOver(roundsPerLook)) yield undefined;
    takes = placed === 0 && takes !== undefined ? takes : ways(anchor, 1)[0];
    if (takes === undefined) break;
    const times = Math.min(timesOf(takes), max - placed);
    if (times < 1) break;
    overlay.add(times === 1 ? takes : takes.map((take) => ({ ...take, amount: take.amount * times })));
    placed += times;
  }
  return placed;
}

function* spread({ work, turns, ways }: Counted, anchor: Provider, max: number, overlay: Overlay): Pieces<number> {
  let placed = 0;
  while (placed < max && work.looks > 0) {
    if (turns?.isOver(roundsPerLook)) yield undefined;
    let best: { readonly takes: readonly Amount[]; readonly left: number } | undefined;
    for (const takes of ways(anchor, mostWays)) {
      const left = takes.reduce((sum, { provider, classId, amount }) => sum + timesAt(provider, classId, amount), 0);
      if (left > (best?.left ?? -1)) best = { takes, left };
    }
    if (best === undefined) break;
    overlay.add(best.takes);
    placed += 1;
  }
  return placed;
}

function* bySearch(counted: Counted, anchor: Provider, max: number, atLeast: Bounded): Pieces<Bounded> {
  const found = yield* mostFound(counted, anchor, max);
  return found.count > atLeast.count || found.exact ? found : atLeast;
}

function* mostFound(counted: Counted, anchor: Provider, max: number): Pieces<Bounded> {
  const { request, sharing, work, atTree, turns, ways } = counted;
  const [first, second] = ways(anchor, 2);
  if (first === undefined) return { count: 0, exact: work.looks > 0 && atTree.looks >= 0 };
  // If there is only one way to place a consumer, none is added by placing consumers.
  if (second === undefined && atTree.looks >= 0) return { count: timesOf(first), exact: true };
  const bound = yield* mostAt([anchor], request, sharing, work, turns);
  const most = Math.min(max, bound);
  const filled = yield* inOverlay((overlay) => fill(counted, anchor, most, overlay, first));
  if (filled >= bound || bound > mostOneByOne) return { count: filled, exact: filled >= bound };
  const spreadOut = yield* inOverlay((overlay) => spread(counted, anchor, most, overlay));
  const count = Math.max(filled, spreadOut);
  return { count, exact: count >= bound };
}

/** How many required traits can be kept as bits of a number. */
const mostNeeds = 30;

/**
 * The group without suffix may take each class from another provider, so each class is counted by itself. Only required
 * traits connect the classes: the providers of one consumer must have them together.
 */
function ofGroupWithoutSuffix(group: ResolvedGroup, anchor: Provider, usable: readonly Provider[]): Bounded {
  const { required } = group.traits;
  if (required.length > mostNeeds) return { count: 0, exact: false };
  const needs = 2 ** required.length - 1;
  const options = optionsByClass(anchor, usable, group);
  if (options.length === 0) return { count: 0, exact: true };
  const lists = group.resources.map(({ classId, amount }, place) => {
    const kinds = new Map<number, number>();
    for (const provider of options[place] ?? []) {
      let kind = 0;
      for (const [need, anyOf] of required.entries()) if (hasAnyTrait(provider.traitIds, anyOf)) kind |= 2 ** need;
      kinds.set(kind, (kinds.get(kind) ?? 0) + timesAt(provider, classId, amount));
    }
    return kinds;
  });
  return mostTeams(lists, needs);
}
