import type { Fleet } from '../../fleet/model/fleet.ts';
import { type Amount, type Overlay, openOverlay } from '../../fleet/model/overlay.ts';
import { type Provider, treeOf, treeSize } from '../../fleet/model/provider.ts';
import { type Pieces, roundsPerClockRead, type Turns } from '../../request/turns.ts';
import { anchorsFor, type Sharing, sharingIn } from '../anchors.ts';
import {
  type Candidate,
  choiceAlone,
  granularProviders,
  isAlone,
  optionsByClass,
  takenByProvider,
} from '../choices.ts';
import { candidatesOf } from '../combinations.ts';
import { hasAny } from '../filters.ts';
import { byName, keepBest } from '../order.ts';
import type { CandidateRequest, Work } from '../request.ts';
import { type ResolvedGroup, type ResolvedRequest, resolveVariant } from '../resolve.ts';
import { type Bounded, mostAt, mostTeams, timesAt, timesOfGroup } from './bound.ts';

/** How many consumers of a query can be placed at the same time. */
export type PlacementCount = {
  readonly count: number;
  /** Whether it is proven that no more can be placed; otherwise more may be possible. */
  readonly exact: boolean;
  /** The trees in which most consumers can be placed, each tree counted as if nothing was placed in other trees. */
  readonly trees: readonly TreeCount[];
};

type TreeCount = { readonly root: Provider; readonly count: number };

/** The limits of a count, and how many trees it returns. */
export type CountOptions = {
  /** Counting stops at this number. */
  readonly max: number;
  /** How many trees are returned. */
  readonly top: number;
  /** How many steps the count may take (request.ts). */
  readonly steps?: number;
  /** The turns after which the work pauses; without turns the work does not pause. */
  readonly turns?: Turns | undefined;
};

/** About a tenth of a second. */
const mostSteps = 6_000_000;

/**
 * Counts how many consumers can be placed at the same time, in addition to the present usage. It computes the number where there
 * is a rule for it; otherwise it places consumers in an overlay of the fleet, which is hidden before it returns or pauses. Where
 * it pauses, the snapshot of the fleet must be held (src/fleet/model/held_snapshots.ts).
 *
 * @param request a query whose names exist
 */
export function* countPlacements(
  fleet: Fleet,
  request: CandidateRequest,
  { max, top, steps = mostSteps, turns }: CountOptions,
): Pieces<PlacementCount> {
  const resolved = resolveVariant(fleet, request);
  if (resolved === 'nothing') return { count: 0, exact: true, trees: [] };
  const sharing = sharingIn(fleet);
  const work = { steps };
  const counter = treeCounter(resolved, sharing, work, turns);
  const best = keepBest(top, byCount);
  const taking = takingFromOthers(resolved, sharing);
  let total: Bounded = { count: 0, exact: true };
  const together: CountedTree[] = [];
  // As a list, since the lists of the fleet change in pauses.
  for (const root of [...anchorsFor(fleet, resolved, sharing, 'steady')]) {
    if (turns?.isOver(resolved.groups.length * treeSize(root))) yield undefined;
    const found = counter.alone(root, max);
    const alone = 'count' in found ? found : yield* found;
    if (alone.count > 0) best.note({ root, count: Math.min(alone.count, max) });
    if (taking.isApart(root)) total = added(total, alone);
    else together.push({ root, alone });
  }
  const countPart = partCounter(resolved, sharing, counter, { max, work, turns });
  for (const trees of taking.parts(together)) {
    if (turns?.isOver(trees.length)) yield undefined;
    const found = countPart(trees);
    total = added(total, 'count' in found ? found : yield* found);
  }
  return {
    count: Math.min(total.count, max),
    exact: total.exact && total.count < max,
    trees: best.list(),
  };
}

const added = (one: Bounded, other: Bounded): Bounded => ({
  count: one.count + other.count,
  exact: one.exact && other.exact,
});

/** Largest counts first, then by name. */
const byCount = (a: TreeCount, b: TreeCount): number => b.count - a.count || byName(a.root, b.root);

/** A tree, and how many consumers fit there if nothing is placed in other trees. */
type CountedTree = { readonly root: Provider; readonly alone: Bounded };

/** Which trees take resources of a request from other trees. */
type TakingFromOthers = {
  /** Whether a tree takes nothing from other trees, and no other tree takes from this tree. */
  isApart(root: Provider): boolean;
  /** Trees in parts, such that trees of different parts never take from the same provider. */
  parts(trees: readonly CountedTree[]): Iterable<readonly CountedTree[]>;
};

/** A sharing provider counts only if it has a class that some group needs. */
function takingFromOthers({ groups }: Pick<ResolvedRequest, 'groups'>, sharing: Sharing): TakingFromOthers {
  const classIds = new Set(groups.flatMap(({ resources }) => resources.map(({ classId }) => classId)));
  const hasSome = ({ inventories }: Provider): boolean =>
    inventories.some(({ fields }) => classIds.has(fields.classId));
  return {
    isApart: (root) =>
      !sharing.exists ||
      !(
        sharing.usableBy(root).some(hasSome) ||
        treeOf(root).some((provider) => sharing.isSharing(provider) && hasSome(provider))
      ),
    parts: (trees) => {
      /** By root, another root of the same part; the last root of such a chain identifies the part. */
      const joined = new Map<Provider, Provider>();
      const lastOf = (root: Provider): Provider => {
        let last = root;
        for (let next = joined.get(last); next !== undefined; next = joined.get(last)) last = next;
        // The next search for the last root is short.
        if (last !== root) joined.set(root, last);
        return last;
      };
      for (const { root } of trees) {
        for (const provider of sharing.usableBy(root)) {
          if (!hasSome(provider)) continue;
          const [one, other] = [lastOf(root), lastOf(provider.root)];
          if (one !== other) joined.set(one, other);
        }
      }
      return Map.groupBy(trees, ({ root }) => lastOf(root)).values();
    },
  };
}

/** After the first way to place consumers in a part, other ways are tried for this number of trees in all parts together. */
const mostTreesAgain = 4000;

/**
 * Counts consumers in all trees of a part together. There is no rule for this count: consumers are placed tree by tree, and where
 * that does not reach an upper bound, in other orders of the trees and in other ways. A tree in which few consumers fit may need
 * the sharing providers, and a tree in which many fit may use them best. So each kind of tree comes first in one attempt.
 */
function partCounter(
  request: ResolvedRequest,
  sharing: Sharing,
  counter: TreeCounter,
  limits: { readonly max: number; readonly work: Work; readonly turns: Turns | undefined },
): (trees: readonly CountedTree[]) => Bounded | Pieces<Bounded> {
  const [only, another] = request.groups;
  const again = { trees: mostTreesAgain };
  return (trees) => {
    const [first, second] = trees;
    if (first === undefined || second === undefined) return first?.alone ?? { count: 0, exact: true };
    if (!only?.granular || another !== undefined) {
      return byPlacing(trees, request, sharing, counter, { ...limits, again });
    }
    const options = trees.flatMap(({ root }) => granularProviders(only, root, sharing.usableBy(root), 'steady'));
    return { count: [...new Set(options)].reduce((sum, each) => sum + timesOfGroup(each, only), 0), exact: true };
  };
}

/** @param again for how many trees another way may still be tried */
function* byPlacing(
  trees: readonly CountedTree[],
  request: ResolvedRequest,
  sharing: Sharing,
  counter: TreeCounter,
  limits: {
    readonly max: number;
    readonly work: Work;
    readonly turns: Turns | undefined;
    readonly again: { trees: number };
  },
): Pieces<Bounded> {
  const { max, work, turns, again } = limits;
  const roots = trees.map(({ root }) => root);
  const byAlone = trees.toSorted((one, other) => other.alone.count - one.alone.count);
  const bound = Math.min(yield* mostAt(roots, request, sharing, work, turns), mostOfAll(trees));
  const enough = Math.min(max, bound);
  let count = byAlone[0]?.alone.count ?? 0;
  const fillings = bound <= mostOneByOne ? [counter.fill, counter.spread] : [counter.fill];
  const mostFirst = byAlone.map(({ root }) => root);
  const attempts = fillings.flatMap((filling) =>
    [roots, mostFirst, mostFirst.toReversed()].map((order) => ({ filling, order })),
  );
  for (const [number, { filling, order }] of attempts.entries()) {
    if (count >= enough || (number > 0 && again.trees < trees.length)) break;
    if (number > 0) again.trees -= trees.length;
    count = Math.max(count, yield* inOverlay((overlay) => placeInAll(filling, order, enough, overlay)));
  }
  return { count, exact: count >= bound };
}

/** How many consumers fit into trees at most: the sum of the bounds of the trees, which is exact if each tree is counted exactly. */
const mostOfAll = (trees: readonly CountedTree[]): number =>
  trees.every(({ alone }) => alone.exact)
    ? trees.reduce((sum, { alone }) => sum + alone.count, 0)
    : Number.POSITIVE_INFINITY;

/** How many consumers are placed in trees one after the other, up to `enough`. */
function* placeInAll(filling: Filling, roots: readonly Provider[], enough: number, overlay: Overlay): Pieces<number> {
  let placed = 0;
  for (const root of roots) {
    if (placed >= enough) break;
    placed += yield* filling(root, enough - placed, overlay);
  }
  return placed;
}

/** The amounts that one consumer takes with a candidate. If several groups take the same class from one provider, their sum. */
function takesOf(candidate: Candidate): readonly Amount[] {
  const takes: Amount[] = [];
  for (const [provider, amounts] of takenByProvider(candidate)) {
    for (const [classId, amount] of amounts) takes.push({ provider, classId, amount });
  }
  return takes;
}

/** How many consumers can each take these amounts at the same time. */
const timesOf = (takes: readonly Amount[]): number =>
  takes.reduce(
    (times, { provider, classId, amount }) => Math.min(times, timesAt(provider, classId, amount)),
    Number.POSITIVE_INFINITY,
  );

/**
 * Does work that places consumers in an overlay. During pauses of the work, and after it, the overlay is hidden, so that no other
 * request sees the consumers. A count reads only the inventories, and caches nothing with the trees: so no index needs an update.
 */
function* inOverlay<Result>(act: (overlay: Overlay) => Pieces<Result>): Pieces<Result> {
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
type TreeCounter = {
  /** How many fit into a tree if nothing is placed in other trees. The search for more may stop at `max`. Most trees need no pieces. */
  alone(anchor: Provider, max: number): Bounded | Pieces<Bounded>;
  /** Places as many consumers as fit in the first way that is found, then in the next way, and so on. */
  readonly fill: Filling;
  /** Places consumers one by one, each in the way for which the providers have most room. */
  readonly spread: Filling;
};

/** Places consumers in a tree, up to `max`, until it finds no place for one more. @returns how many */
type Filling = (anchor: Provider, max: number, overlay: Overlay) => Pieces<number>;

/** How many steps one search at one tree may take, so that a hard tree does not use up the budget of the other trees. */
const mostStepsAtTree = 200_000;
/** When consumers are placed one by one, this number of ways is compared for each of them. */
const mostWays = 16;
/** If `fill` does not reach the upper bound, and the bound is not above this, `spread` is tried as well. */
const mostOneByOne = 200;

/**
 * @param work how many steps all trees may take together
 * @param turns the turns after which the work at a tree pauses
 */
function treeCounter(request: ResolvedRequest, sharing: Sharing, work: Work, turns: Turns | undefined): TreeCounter {
  const atTree: Work = { steps: 0 };
  const candidatesAt = candidatesOf(request, sharing, 'steady', { work: atTree });
  const [only, another] = request.groups;
  const group = another === undefined ? only : undefined;

  const ways = (anchor: Provider, most: number): readonly (readonly Amount[])[] => {
    const granted = Math.min(work.steps, mostStepsAtTree);
    atTree.steps = granted;
    const found: (readonly Amount[])[] = [];
    const take = (candidate: Candidate): boolean => found.push(takesOf(candidate)) >= most;
    for (const candidate of candidatesAt(anchor)) if (candidate !== undefined && take(candidate)) break;
    work.steps -= granted - atTree.steps + request.groups.length * treeSize(anchor);
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

/** The tree to count in, and the budget. */
type Counted = {
  readonly request: ResolvedRequest;
  readonly sharing: Sharing;
  readonly work: Work;
  /** The part of the work that may be done at the tree. */
  readonly atTree: Work;
  readonly turns: Turns | undefined;
  /** The first ways to place one consumer in a tree, at most `most` of them. */
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
  while (placed < max && work.steps > 0) {
    if (turns?.isOver(roundsPerClockRead)) yield undefined;
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
  while (placed < max && work.steps > 0) {
    if (turns?.isOver(roundsPerClockRead)) yield undefined;
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
  if (first === undefined) return { count: 0, exact: work.steps > 0 && atTree.steps >= 0 };
  // If there is only one way to place a consumer, placing consumers adds no other way.
  if (second === undefined && atTree.steps >= 0) return { count: timesOf(first), exact: true };
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
  const lists = group.resources.map(({ classId, amount }, index) => {
    const kinds = new Map<number, number>();
    for (const provider of options[index] ?? []) {
      let kind = 0;
      for (const [need, anyOf] of required.entries()) if (hasAny(provider.traitIds, anyOf)) kind |= 2 ** need;
      kinds.set(kind, (kinds.get(kind) ?? 0) + timesAt(provider, classId, amount));
    }
    return kinds;
  });
  return mostTeams(lists, needs);
}
