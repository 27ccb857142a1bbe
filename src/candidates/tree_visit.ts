import { satisfiesTraits } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import type { TreeKey } from '../fleet/tree_keys.ts';
import type { TreeOrder, TreeRun } from '../fleet/tree_order.ts';
import type { AllowedTrees } from './allowed_trees.ts';
import { anchorsFor, fewAnchors } from './anchors.ts';
import { type Order, type ProviderOrder, visit, walk } from './order.ts';
import { demandsOf, passingFullTrees, type Tally } from './passing_full_trees.ts';
import type { ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';

/** The roots at which candidates are looked for, and in which order the providers of each group are tried there. */
export type TreeVisit = {
  readonly anchors: Iterable<Provider>;
  readonly within: ProviderOrder;
  /** Here the search counts the trees that have a candidate. If these are many, the trees with room are not looked up. */
  readonly tally: Tally;
};

/** How trees are visited. */
export type VisitOptions = {
  /** The order of trees that are equal by all keys, and of providers of a tree; without keys all are equal. */
  readonly ties: Order;
  readonly allowed: AllowedTrees;
  /**
   * Whether all roots are listed before the first one is visited, so that none is left out or comes twice if the fleet
   * changes meanwhile. Otherwise nothing may be awaited while the anchors of a request with `order` are taken.
   */
  readonly wholly?: boolean;
};

/**
 * The order in which trees are tried for a request. Some anchors have no candidate; the first one that has is the first
 * tree by `order` that fits. Anchors are found one by one, so that a search that stops early saves the work for the rest.
 * The order is that of the fleet when the first anchor is taken, with its suppositions (src/fleet/supposed.ts).
 */
export function visitTrees(
  fleet: Fleet,
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits' | 'order'>,
  sharing: Sharing,
  { ties, allowed, wholly = false }: VisitOptions,
): TreeVisit {
  const tally: Tally = { fitting: 0 };
  const { keys = [], isRandom = false } = request.order ?? {};
  const equals = isRandom ? 'random' : ties;
  const hasKeys = keys.length > 0;
  const { only, not } = allowed;
  const listed = only === undefined ? undefined : withRootTraits(only, request);
  // The order `rotated` has a copy of its own.
  const copied = wholly && equals !== 'rotated';
  const anchors = hasKeys
    ? inKeyOrder(fleet, keys, request, sharing, equals, listed, tally)
    : listed === undefined
      ? anchorsFor(copied ? { ...fleet, roots: fleet.roots.slice() } : fleet, request, sharing, equals, tally)
      : walk(listed, equals);
  const visited = not.size === 0 ? anchors : Iterator.from(anchors).filter((anchor) => !not.has(anchor));
  return { anchors: wholly && hasKeys ? [...visited] : visited, within: hasKeys ? { keys, equals } : equals, tally };
}

const withRootTraits = (
  roots: Iterable<Provider>,
  { rootTraits }: Pick<ResolvedRequest, 'rootTraits'>,
): readonly Provider[] => [...roots].filter(({ traitIds }) => satisfiesTraits(traitIds, rootTraits));

/** At most this number of trees is sorted for one request. If there may be more, the order of all trees is followed. */
const mostSorted = 256;

/** The same after many trees were visited: then sorting takes less time than going on. */
const mostSortedLater = 8192;

/** @param listed the only roots that may be anchors, if they are known */
function* inKeyOrder(
  fleet: Fleet,
  keys: readonly TreeKey[],
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  sharing: Sharing,
  equals: Order,
  listed: readonly Provider[] | undefined,
  tally: Tally,
): Generator<Provider> {
  const order = fleet.treeOrders.of(keys);
  const few = listed ?? fewAnchors(fleet, request, sharing, Math.min(mostSorted, fleet.roots.length / 8));
  const anchors =
    few === undefined
      ? inKeyOrderOfAll(fleet, order, request, sharing, equals, tally)
      : visitRuns(runsOf(few, order), equals);
  for (const anchor of anchors) if (satisfiesTraits(anchor.traitIds, request.rootTraits)) yield anchor;
}

function inKeyOrderOfAll(
  fleet: Fleet,
  order: TreeOrder,
  request: Pick<ResolvedRequest, 'groups'>,
  sharing: Sharing,
  equals: Order,
  tally: Tally,
): Iterable<Provider> {
  const demands = demandsOf(request, sharing);
  return passingFullTrees(fleet, visitRuns(order.runs(demands), equals), tally, () => {
    const roomy = fleet.treeRoom.meeting(demands, Math.min(mostSortedLater, fleet.roots.length / 8));
    return roomy === undefined ? undefined : visitRuns(runsOf(roomy, order), equals);
  });
}

/** The roots of each run, those that are equal by all keys in another order. */
function* visitRuns(runs: Iterable<TreeRun>, equals: Order): Generator<Provider> {
  for (const run of runs) yield* visit(run, equals);
}

/** Some roots in order, those of equal values together. */
function* runsOf(roots: readonly Provider[], order: TreeOrder): Generator<TreeRun> {
  let run: Provider[] = [];
  for (const root of roots.toSorted(order.compare)) {
    const [first] = run;
    if (first !== undefined && !order.areEqual(first, root)) {
      yield run;
      run = [];
    }
    run.push(root);
  }
  if (run.length > 0) yield run;
}
