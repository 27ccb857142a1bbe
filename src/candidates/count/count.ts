import type { Fleet } from '../../fleet/fleet.ts';
import { type Provider, treeOf } from '../../fleet/provider.ts';
import { anchorsFor } from '../anchors.ts';
import { granularProviders } from '../choices.ts';
import { byName, keepBest } from '../keep_best.ts';
import type { CandidateRequest } from '../request.ts';
import type { ResolvedRequest } from '../resolve.ts';
import { resolveVariant } from '../resolve.ts';
import { type Sharing, sharingIn } from '../sharing.ts';
import { mostAt } from './bound.ts';
import type { Bounded } from './pairing.ts';
import { timesOfGroup, withRaisedUsage } from './room.ts';
import { type TreeCounter, treeCounter } from './tree_count.ts';

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
  /** How many looks the count may take (work.ts). */
  readonly looks?: number;
};

/** About a tenth of a second. */
const mostLooks = 6_000_000;

/**
 * Counts how many consumers can be placed at the same time, beside what is used now. It computes the number where there
 * is a rule for it; otherwise it places consumers in the fleet in memory, and takes all of them back before it returns.
 *
 * @param request a query whose names exist
 */
export function countPlacements(
  fleet: Fleet,
  request: CandidateRequest,
  { max, top, looks = mostLooks }: CountOptions,
): PlacementCount {
  const resolved = resolveVariant(fleet, request);
  if (resolved === 'nothing') return { count: 0, exact: true, trees: [] };
  const sharing = sharingIn(fleet);
  const counter = treeCounter(resolved, sharing, { looks });
  const best = keepBest(top, byCount);
  let total: Bounded = { count: 0, exact: true };
  let sharingAlone: Bounded = { count: 0, exact: true };
  const sharingTrees: Provider[] = [];
  for (const anchor of anchorsFor(fleet, resolved, sharing, 'steady')) {
    const alone = counter.alone(anchor, max);
    if (alone.count > 0) best.note({ root: anchor, count: Math.min(alone.count, max) });
    if (isApart(anchor, sharing)) {
      total = added(total, alone);
      continue;
    }
    sharingTrees.push(anchor);
    sharingAlone = added(sharingAlone, alone);
  }
  if (sharingTrees.length > 0)
    total = added(total, countSharing(sharingTrees, sharingAlone, resolved, sharing, counter, max));
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

/** Whether a tree takes nothing from other trees, and they take nothing from it. */
const isApart = (anchor: Provider, sharing: Sharing): boolean =>
  !sharing.exists || (sharing.usableBy(anchor).length === 0 && !treeOf(anchor).some(sharing.isSharing));

/**
 * Counts trees that share providers, all of them together.
 *
 * @param alone the sum of their counts, each counted as if nothing was placed in the others
 */
function countSharing(
  anchors: readonly Provider[],
  alone: Bounded,
  request: ResolvedRequest,
  sharing: Sharing,
  counter: TreeCounter,
  max: number,
): Bounded {
  const [only, another] = request.groups;
  if (only?.granular && another === undefined) {
    const providers = new Set(
      anchors.flatMap((anchor) => granularProviders(only, anchor, sharing.usableBy(anchor), 'steady')),
    );
    return { count: [...providers].reduce((sum, provider) => sum + timesOfGroup(provider, only), 0), exact: true };
  }
  const bound = Math.min(mostAt(anchors, request, sharing), alone.exact ? alone.count : Number.POSITIVE_INFINITY);
  const count = withRaisedUsage((raise) => {
    let placed = 0;
    for (const anchor of anchors) {
      if (placed >= Math.min(max, bound)) break;
      placed += counter.fill(anchor, Math.min(max, bound) - placed, raise);
    }
    return placed;
  });
  return { count, exact: count >= bound };
}

/** Largest counts first, then by name. */
const byCount = (a: TreeCount, b: TreeCount): number => b.count - a.count || byName(a.root, b.root);
