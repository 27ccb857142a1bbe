import type { Fleet } from '../../fleet/fleet.ts';
import { type Provider, treeSize } from '../../fleet/provider.ts';
import type { Pieces, Turns } from '../../rest/pieces.ts';
import { anchorsFor } from '../anchors.ts';
import { byName, keepBest } from '../keep_best.ts';
import type { CandidateRequest } from '../request.ts';
import { resolveVariant } from '../resolve.ts';
import { sharingIn } from '../sharing.ts';
import type { Bounded } from './pairing.ts';
import { type CountedTree, partCounter, takingFromOthers } from './together.ts';
import { treeCounter } from './tree_count.ts';

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
  /** The turns after which the work pauses; without them it goes on to its end. */
  readonly turns?: Turns | undefined;
};

/** About a tenth of a second. */
const mostLooks = 6_000_000;

/**
 * Counts how many consumers can be placed at the same time, beside what is used now. It computes the number where there
 * is a rule for it; otherwise it places consumers in the fleet in memory, and takes all of them back before it returns or pauses. Where
 * it pauses, the moment of the fleet must be held (src/fleet/held_moments.ts).
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
