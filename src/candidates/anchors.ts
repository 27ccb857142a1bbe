import { satisfiesTraits } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { ProviderSet } from '../fleet/postings.ts';
import type { Provider } from '../fleet/provider.ts';
import type { ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';

/**
 * The order in which anchors are visited. Where all are, a random start will do: neighbours lie beside each other in memory,
 * and jumping between 10,000 hosts takes four times as long as passing them.
 */
export type Order = 'steady' | 'rotated' | 'random';

/**
 * The roots that may anchor a candidate: a superset, as narrow as the rarest thing that is asked for makes it. What is asked
 * for in few places is looked up there; otherwise all roots are visited.
 */
export function* anchorsFor(
  fleet: Fleet,
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  sharing: Sharing,
  order: Order,
): Generator<Provider> {
  const few = rarest(fleet, request, fleet.roots.length / 2);
  const anchors = few === undefined ? walk(fleet.roots, order) : anchorsOf(few, sharing, order);
  for (const anchor of anchors) if (satisfiesTraits(anchor.traitIds, request.rootTraits)) yield anchor;
}

/**
 * The fewest providers of which each candidate uses one, or whose root is the anchor: the holders of a class, a required
 * trait or an aggregate, or a tree that is named.
 *
 * @returns undefined where there are not fewer than the limit
 */
function rarest(
  fleet: Fleet,
  { groups, rootTraits }: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  limit: number,
): Iterable<Provider> | undefined {
  let fewest: { readonly size: number; readonly providers: Iterable<Provider> } | undefined;
  const consider = (size: number, providers: Iterable<Provider>): void => {
    if (size < (fewest?.size ?? limit)) fewest = { size, providers };
  };
  const considerSet = (set: ProviderSet): void => consider(set.size, set);
  if (rootTraits.required.length > 0) considerSet(fleet.withTrait.smallest(rootTraits.required));
  for (const group of groups) {
    for (const { classId } of group.resources) considerSet(fleet.withClass.of(classId));
    if (group.traits.required.length > 0) considerSet(fleet.withTrait.smallest(group.traits.required));
    if (group.memberOf.length > 0) considerSet(fleet.inAggregate.smallest(group.memberOf));
    if (group.treeRoot !== undefined && group.resources.length > 0) {
      consider(group.treeRoot.tree.length, group.treeRoot.tree);
    }
  }
  return fewest?.providers;
}

/** The anchors from which some providers can be used, each once. */
function* anchorsOf(providers: Iterable<Provider>, sharing: Sharing, order: Order): Generator<Provider> {
  const seen = new Set<Provider>();
  const listed = order === 'steady' ? providers : walk([...providers], order);
  for (const provider of listed) {
    const anchors = sharing.isSharing(provider) ? sharing.anchorsOf(provider) : [provider.root];
    for (const anchor of anchors) {
      if (seen.has(anchor)) continue;
      seen.add(anchor);
      yield anchor;
    }
  }
}

/** A list in order, or in a random one. */
export const walk = <Item>(items: readonly Item[], order: Order): Iterable<Item> =>
  order === 'steady' || items.length < 2 ? items : wander(items, order);

/** As `walk`, for lists so short that stopping in between saves nothing. */
export function inOrder<Item>(items: readonly Item[], order: Order): readonly Item[] {
  const { length } = items;
  if (order === 'steady' || length < 2) return items;
  const { place, step } = wayThrough(length, order);
  return items.map((item, count) => items[(place + count * step) % length] ?? item);
}

function* wander<Item>(items: readonly Item[], order: Order): Generator<Item> {
  const { length } = items;
  let { place, step } = wayThrough(length, order);
  for (let visited = 0; visited < length; visited++) {
    const item = items[place];
    if (item !== undefined) yield item;
    place = (place + step) % length;
  }
}

/**
 * A random order without shuffling: from a random place by a random step that shares no divisor with the length of the list,
 * so that every element is met once. Rotated, the step is one.
 */
function wayThrough(length: number, order: Order): { readonly place: number; readonly step: number } {
  let step = order === 'rotated' ? 1 : 1 + Math.floor(Math.random() * length);
  while (greatestCommonDivisor(step, length) !== 1) step++;
  return { place: Math.floor(Math.random() * length), step };
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));
