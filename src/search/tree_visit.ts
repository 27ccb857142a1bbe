import type { Fleet } from '../fleet/model/fleet.ts';
import type { Provider } from '../fleet/model/provider.ts';
import type { TreeKey, TreeOrder, TreeRun } from '../fleet/model/tree_order.ts';
import type { Demand } from '../fleet/model/tree_room.ts';
import {
  type AllowedTrees,
  anchorsFor,
  demandsOf,
  fewAnchors,
  passingFullTrees,
  type Sharing,
  type Tally,
} from './anchors.ts';
import { withTraits } from './filters.ts';
import { type ProviderOrder, type ProviderRank, type VisitOrder, visit, walk } from './order.ts';
import type { ResolvedRequest } from './resolve.ts';

/** The roots at which candidates are searched, and the order in which the providers of each group are visited there. */
type TreeVisit = {
  readonly anchors: Iterable<Provider>;
  readonly within: ProviderOrder;
  /** The search counts here the trees that have a candidate. If they are many, the trees with room are not looked up. */
  readonly tally: Tally;
};

/** How trees are visited. */
type VisitOptions = {
  /** The order of trees that are equal by all keys, and of providers of a tree; without keys all are equal. */
  readonly ties: VisitOrder;
  readonly allowed: AllowedTrees;
  /** Which providers of a tree are preferred, unless the query asks for random ones. */
  readonly rank?: ProviderRank | undefined;
};

/**
 * The order in which trees are visited for a request. Some anchors have no candidate; the first anchor with a candidate is the first
 * tree by `order` that fits. Anchors are found one by one, so that a search that stops early saves the work for the rest.
 * The fleet and its overlays (src/fleet/model/overlay.ts) are read with each anchor, so no `await` may come before the last anchor.
 */
export function visitTrees(
  fleet: Fleet,
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits' | 'order'>,
  sharing: Sharing,
  { ties, allowed, rank: preferred }: VisitOptions,
): TreeVisit {
  const tally: Tally = { fitting: 0 };
  const { keys = [], isRandom = false } = request.order ?? {};
  const equals = isRandom ? 'random' : ties;
  const rank = isRandom ? undefined : preferred;
  const hasKeys = keys.length > 0;
  const { only, not } = allowed;
  const listed = only === undefined ? undefined : withRootTraits(only, request);
  const anchors = hasKeys
    ? inKeyOrder(fleet, keys, request, sharing, equals, listed, tally)
    : listed === undefined
      ? anchorsFor(fleet, request, sharing, equals, tally)
      : walk(listed, equals);
  const visited = not.size === 0 ? anchors : Iterator.from(anchors).filter((anchor) => !not.has(anchor));
  return { anchors: visited, within: hasKeys || rank !== undefined ? { keys, rank, equals } : equals, tally };
}

const withRootTraits = (
  roots: Iterable<Provider>,
  { rootTraits }: Pick<ResolvedRequest, 'rootTraits'>,
): readonly Provider[] => [...roots].filter(withTraits(rootTraits));

/** At most this number of trees is sorted for one request. If there may be more, the tree order of the whole fleet is followed. */
const mostSorted = 256;

/** The same limit after many trees were visited: then sorting takes less time than visiting more trees. */
const mostSortedLater = 8192;

/** @param listed the only roots that may be anchors, if they are known */
function* inKeyOrder(
  fleet: Fleet,
  keys: readonly TreeKey[],
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  sharing: Sharing,
  equals: VisitOrder,
  listed: readonly Provider[] | undefined,
  tally: Tally,
): Generator<Provider> {
  const treeOrder = fleet.treeOrders.of(keys);
  const few = listed ?? fewAnchors(fleet, request, sharing, Math.min(mostSorted, fleet.roots.length / 8));
  const anchors =
    few === undefined
      ? inKeyOrderOfAll(fleet, treeOrder, request, sharing, equals, tally)
      : visitRuns(runsOf(few, treeOrder), equals);
  const isWanted = withTraits(request.rootTraits);
  for (const anchor of anchors) if (isWanted(anchor)) yield anchor;
}

function inKeyOrderOfAll(
  fleet: Fleet,
  treeOrder: TreeOrder,
  request: Pick<ResolvedRequest, 'groups'>,
  sharing: Sharing,
  equals: VisitOrder,
  tally: Tally,
): Iterable<Provider> {
  const demands = demandsOf(request, sharing);
  const runs =
    fleet.tolerating.size === 0 ? treeOrder.runs(demands) : withTolerating(fleet.tolerating, treeOrder, demands);
  return passingFullTrees(fleet, visitRuns(runs, equals), tally, () => {
    const roomy = fleet.treeRoom.meeting(demands, Math.min(mostSortedLater, fleet.roots.length / 8));
    return roomy === undefined ? undefined : visitRuns(runsOf(roomy, treeOrder), equals);
  });
}

/**
 * The runs of a tree order, with all trees in which usage beyond the capacity is tolerated: the order alone would leave out these trees
 * as full.
 */
function* withTolerating(
  tolerating: ReadonlySet<Provider>,
  treeOrder: TreeOrder,
  demands: readonly Demand[],
): Generator<TreeRun> {
  const others = [...runsOf([...tolerating], treeOrder)];
  const unlessTolerating = (root: Provider | undefined) =>
    root !== undefined && tolerating.has(root) ? undefined : root;
  for (const run of treeOrder.runs(demands)) {
    const first = run.at(0);
    let whole: TreeRun = { length: run.length, at: (number) => unlessTolerating(run.at(number)) };
    for (let [next] = others; next !== undefined; [next] = others) {
      const other = next.at(0);
      if (first === undefined || other === undefined) break; // no run is empty
      const areEqual = treeOrder.areEqual(first, other);
      if (!areEqual && treeOrder.compare(first, other) < 0) break;
      others.shift();
      if (areEqual) whole = joined(whole, next);
      else yield next;
    }
    yield whole;
  }
  yield* others;
}

const joined = (one: TreeRun, other: TreeRun): TreeRun => ({
  length: one.length + other.length,
  at: (number) => (number < one.length ? one.at(number) : other.at(number - one.length)),
});

/** The roots of each run. Roots of one run are equal by all keys, and come in the order of `equals`. */
function* visitRuns(runs: Iterable<TreeRun>, equals: VisitOrder): Generator<Provider> {
  for (const run of runs) yield* visit(run, equals);
}

/** Some roots in order, in runs of equal values. */
function* runsOf(roots: readonly Provider[], treeOrder: TreeOrder): Generator<TreeRun> {
  let run: Provider[] = [];
  for (const root of roots.toSorted(treeOrder.compare)) {
    const [first] = run;
    if (first !== undefined && !treeOrder.areEqual(first, root)) {
      yield run;
      run = [];
    }
    run.push(root);
  }
  if (run.length > 0) yield run;
}
