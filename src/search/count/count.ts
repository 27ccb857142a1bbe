import type { Fleet } from '../../fleet/model/fleet.ts';
import type { Overlay } from '../../fleet/model/overlay.ts';
import { type Provider, treeOf, treeSize } from '../../fleet/model/provider.ts';
import type { Pieces, Turns } from '../../request/turns.ts';
import { anchorsFor } from '../anchors.ts';
import { granularProviders } from '../options.ts';
import { byName, keepBest } from '../order.ts';
import type { CandidateRequest, Work } from '../request.ts';
import { type ResolvedRequest, resolveVariant } from '../resolve.ts';
import { type Sharing, sharingIn } from '../sharing.ts';
import { mostAt } from './bound.ts';
import type { Bounded } from './pairing.ts';
import { timesOfGroup } from './room.ts';
import { type Filling, inOverlay, mostOneByOne, type TreeCounter, treeCounter } from './tree_count.ts';

/** How many consumers, each with what a query asks for, can be placed at the same time. */
export type PlacementCount = {
  readonly count: number;
  /** Whether it is proven that no more can be placed; otherwise more may be possible. */
  readonly exact: boolean;
  /** The trees in which most can be placed, each counted as if nothing was placed in other trees. */
  readonly trees: readonly TreeCount[];
};

type TreeCount = { readonly root: Provider; readonly count: number };

/** When counting ends, and how much of it is returned. */
export type CountOptions = {
  /** Counting stops at this number. */
  readonly max: number;
  /** How many trees are returned. */
  readonly top: number;
  /** How many looks the count may take (request.ts). */
  readonly looks?: number;
  /** The turns after which the work pauses; without them it goes on to its end. */
  readonly turns?: Turns | undefined;
};

/** About a tenth of a second. */
const mostLooks = 6_000_000;

/**
 * Counts how many consumers can be placed at the same time, beside what is used now. It computes the number where there
 * is a rule for it; otherwise it places consumers in an overlay of the fleet, which is hidden before it returns or pauses. Where
 * it pauses, the moment of the fleet must be held (src/fleet/model/held_moments.ts).
 *
 * @param request a query whose names exist
 */
export function* countPlacements(
  fleet: Fleet,
  request: CandidateRequest,
  { max, top, looks = mostLooks, turns }: CountOptions,
): Pieces<PlacementCount> {
  const resolved = resolveVariant(fleet, request);
  if (resolved === 'nothing') return { count: 0, exact: true, trees: [] };
  const sharing = sharingIn(fleet);
  const work = { looks };
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

/** Which trees take from others what a request asks for. */
type TakingFromOthers = {
  /** Whether a tree takes nothing from other trees, and they take nothing from it. */
  isApart(root: Provider): boolean;
  /** Trees in parts, such that no tree of a part takes from the same provider as one of another part. */
  parts(trees: readonly CountedTree[]): Iterable<readonly CountedTree[]>;
};

/** A provider that shares counts only if it has a class that some group asks for. */
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
      /** By the root of a tree another one, which belongs to the same part; the last one stands for all of them. */
      const joined = new Map<Provider, Provider>();
      const lastOf = (root: Provider): Provider => {
        let last = root;
        for (let next = joined.get(last); next !== undefined; next = joined.get(last)) last = next;
        // So that the next way is short.
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

/** After the first way to place consumers in a part, others are tried for so many trees in all parts together. */
const mostTreesAgain = 4000;

/**
 * Counts consumers in the trees of a part, all of them together. There is no rule for it: consumers are placed tree by tree, and
 * where that does not reach an upper bound, in other orders and ways. A tree in which few fit may need what the others share, and
 * one in which many fit may be the best use of it, so both come first once.
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

/** How many fit into trees at most: where each of them is counted exactly, their sum. */
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
