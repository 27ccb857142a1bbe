import { satisfiesTraits } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { inventoryOf, type Provider } from '../fleet/provider.ts';
import type { TreeKey } from '../fleet/tree_keys.ts';
import type { Demand, TreeOrder } from '../fleet/tree_order.ts';
import { badRequest, noSuchClass } from '../rest/errors.ts';
import { anchorsFor, fewAnchors } from './anchors.ts';
import { type Order, type ProviderOrder, walk } from './order.ts';
import type { OrderKey } from './request.ts';
import type { ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';

/** `order` of a query with its names looked up. */
export type ResolvedOrder = {
  readonly keys: readonly TreeKey[];
  /** Whether trees of equal keys come in random order, whatever is configured. */
  readonly isRandom: boolean;
};

/**
 * Looks up the names of `order`. Keys behind `random` have no effect, since it leaves no equal trees.
 *
 * @returns undefined where no order is asked for
 * @throws ApiError 400 for a class or a trait that does not exist
 */
export function resolveOrder({ classes, traits }: Fleet, order: readonly OrderKey[]): ResolvedOrder | undefined {
  if (order.length === 0) return undefined;
  const keys = order.map((key): TreeKey | 'random' => {
    if (key.kind === 'random') return 'random';
    if (key.kind === 'prefer') {
      const traitId = traits.byName.get(key.traitName)?.id;
      if (traitId === undefined) throw wrongKey(`prefer:${key.traitName}`, `No such trait(s): ${key.traitName}.`);
      return { kind: 'prefer', traitId };
    }
    const { className, mostFirst } = key;
    const classId = classes.byName.get(className)?.id;
    if (classId === undefined) throw wrongKey(`${mostFirst ? '-' : ''}free:${className}`, noSuchClass(className));
    return { kind: 'free', classId, mostFirst };
  });
  const random = keys.indexOf('random');
  const counted = random === -1 ? keys : keys.slice(0, random);
  return { keys: counted.filter((key) => key !== 'random'), isRandom: random !== -1 };
}

const wrongKey = (key: string, problem: string) =>
  badRequest(`Invalid query string parameters: order=${key}: ${problem}`);

/** The roots at which candidates are looked for, and in which order the providers of each group are tried there. */
export type TreeVisit = { readonly anchors: Iterable<Provider>; readonly within: ProviderOrder };

/**
 * In which order trees are tried for a request: by its `order`, or in the given one. The first tree that has a candidate is
 * the first by `order` that fits. The anchors are a superset of those that have one, found one by one: stopping early saves
 * the work of all others.
 *
 * With an `order` nothing may be awaited while anchors are taken, unless `wholly`. They are of the fleet as it is when the
 * first is taken, also with what it only supposes (`showEffects`).
 *
 * @param ties the order of trees, and of providers, that are equal by all keys
 * @param wholly whether the list of roots is copied first, so that none is left out or comes twice when the fleet changes
 * @param among the only roots that are tried; all unless it is said
 */
export function visitTrees(
  fleet: Fleet,
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits' | 'order'>,
  sharing: Sharing,
  ties: Order,
  wholly = false,
  among?: readonly Provider[],
): TreeVisit {
  const { order } = request;
  const anchorsIn = (ties: Order, searched = fleet): Iterable<Provider> =>
    among === undefined
      ? anchorsFor(searched, request, sharing, ties)
      : walk(
          among.filter(({ traitIds }) => satisfiesTraits(traitIds, request.rootTraits)),
          ties,
        );
  if (order === undefined) {
    const searched = wholly ? { ...fleet, roots: fleet.roots.slice() } : fleet;
    return { anchors: anchorsIn(ties, searched), within: ties };
  }
  const { keys } = order;
  const equals = order.isRandom ? 'random' : ties;
  const within = keys.length === 0 ? equals : { keys, equals };
  const ordered = keys.length === 0 ? anchorsIn(equals) : inKeyOrder(fleet, keys, request, sharing, equals, among);
  return { anchors: wholly ? [...ordered] : ordered, within };
}

/** So many trees are sorted for one request; of more than these the order of all trees is followed. */
const mostSorted = 1024;

function* inKeyOrder(
  fleet: Fleet,
  keys: readonly TreeKey[],
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  sharing: Sharing,
  equals: Order,
  among: readonly Provider[] | undefined,
): Generator<Provider> {
  const order = fleet.treeOrders.of(keys);
  const few = among ?? fewAnchors(fleet, request, sharing, Math.min(mostSorted, fleet.roots.length / 8));
  const runs = few === undefined ? order.runs(demandsOf(request, sharing)) : runsOf(few, order);
  for (const run of runs) {
    for (const anchor of walk(run, equals)) if (satisfiesTraits(anchor.traitIds, request.rootTraits)) yield anchor;
  }
}

/** Some roots in order, those of equal values together. */
function* runsOf(roots: readonly Provider[], order: TreeOrder): Generator<readonly Provider[]> {
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

/** What a tree must have free for all groups. Of what is also shared it may have nothing. */
function demandsOf({ groups }: Pick<ResolvedRequest, 'groups'>, sharing: Sharing): readonly Demand[] {
  const demands = new Map<number, { classId: number; total: number; ofOne: number }>();
  for (const { resources } of groups) {
    for (const { classId, amount } of resources) {
      const demand = demands.get(classId) ?? { classId, total: 0, ofOne: 0 };
      demand.total += amount;
      demand.ofOne = Math.max(demand.ofOne, amount);
      demands.set(classId, demand);
    }
  }
  return [...demands.values()].filter(
    ({ classId }) => !Iterator.from(sharing.providers).some((provider) => inventoryOf(provider, classId) !== undefined),
  );
}
