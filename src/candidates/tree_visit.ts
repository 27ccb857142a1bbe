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
  /** Where the search notes that it found something, which saves the lookup of trees with room. */
  readonly tally: Tally;
};

/** How trees are visited. */
export type VisitOptions = {
  /** The order of trees, and of providers, that are equal by all keys; without `order` of all. */
  readonly ties: Order;
  readonly allowed: AllowedTrees;
  /**
   * Whether the roots are listed first, so that none is left out or comes twice while the fleet changes. Otherwise nothing may be
   * awaited while the anchors of a request with `order` are taken.
   */
  readonly wholly?: boolean;
};

/**
 * In which order trees are tried for a request. The first anchor that has a candidate is the first by `order` that fits: the
 * anchors are those that have one, and others. They are found one by one, as the fleet is when the first is taken, also by what it
 * only supposes (`showEffects`): a search that stops early saves the work for all others.
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

/** So many trees are sorted for one request; of more than these the order of all trees is followed. */
const mostSorted = 256;

/** The same where many trees were visited already, so that sorting takes less time than going on. */
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
