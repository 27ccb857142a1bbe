import type { Fleet } from '../../fleet/fleet.ts';
import type { Provider } from '../../fleet/provider.ts';
import { anchorsFor } from '../anchors.ts';
import { granularProviders } from '../choices.ts';
import type { CandidateRequest } from '../request.ts';
import type { ResolvedRequest } from '../resolve.ts';
import { resolveVariant } from '../resolve.ts';
import { type Sharing, sharingIn } from '../sharing.ts';
import { mostAt } from './bound.ts';
import type { Bounded } from './pairing.ts';
import { timesOfGroup, withRaisedUsage } from './room.ts';
import { type TreeCounter, treeCounter } from './tree_count.ts';

/** How many consumers with a query can be claimed at once. */
export type PlacementCount = {
  readonly count: number;
  /** Whether it is proven that no more can be; else there may be. */
  readonly exact: boolean;
  /** The trees that take most, each counted as if nothing was placed elsewhere. */
  readonly trees: readonly TreeCount[];
};

type TreeCount = { readonly root: Provider; readonly count: number };

export type CountOptions = {
  /** No more are counted. */
  readonly max: number;
  /** How many trees are wanted. */
  readonly top: number;
  /** How many looks at choices it may take. */
  readonly looks?: number;
};

/** As many as take a tenth of a second. */
const mostLooks = 6_000_000;

/**
 * Counts how many consumers with a query can be claimed at once, beside what is used now: by rules where there are some, else by
 * placing them. What it places is taken back before it returns.
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
  const best = topTrees(top);
  let total: Bounded = { count: 0, exact: true };
  let ofSharing: Bounded = { count: 0, exact: true };
  const sharers: Provider[] = [];
  for (const anchor of anchorsFor(fleet, resolved, sharing, 'steady')) {
    const alone = counter.alone(anchor, max);
    best.note({ root: anchor, count: Math.min(alone.count, max) });
    if (isApart(anchor, sharing)) {
      total = added(total, alone);
      continue;
    }
    sharers.push(anchor);
    ofSharing = added(ofSharing, alone);
  }
  if (sharers.length > 0) total = added(total, countSharing(sharers, ofSharing, resolved, sharing, counter, max));
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

/** Whether a tree takes nothing of other trees, and they nothing of it. */
const isApart = (anchor: Provider, sharing: Sharing): boolean =>
  !sharing.exists || (sharing.usableBy(anchor).length === 0 && !anchor.tree.some(sharing.isSharing));

/**
 * Counts trees that share providers all at once.
 *
 * @param alone the sum of what each takes if nothing is placed in the others
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

/** Remembers the trees that take most. */
function topTrees(limit: number): { note(tree: TreeCount): void; list(): readonly TreeCount[] } {
  const trees: TreeCount[] = [];
  return {
    note: (tree) => {
      const last = trees.at(-1);
      if (tree.count === 0 || limit === 0) return;
      if (trees.length >= limit && last !== undefined && inOrder(tree, last) >= 0) return;
      const before = trees.findIndex((other) => inOrder(tree, other) < 0);
      trees.splice(before === -1 ? trees.length : before, 0, tree);
      if (trees.length > limit) trees.pop();
    },
    list: () => trees,
  };
}

/** Those that take most first, then by name. */
const inOrder = (a: TreeCount, b: TreeCount): number =>
  b.count - a.count ||
  (a.root.name === b.root.name ? Number(a.root.uuid > b.root.uuid) - 1 : a.root.name < b.root.name ? -1 : 1);
