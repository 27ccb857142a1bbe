import { satisfiesTraits } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { ProviderSet } from '../fleet/postings.ts';
import type { Provider } from '../fleet/provider.ts';
import { type Order, walk } from './order.ts';
import { prefetched } from './prefetch.ts';
import type { ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';

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
  // In any other order mostly neighbours in memory follow each other, which the processor foresees.
  const fetched = order === 'random' ? prefetched(anchors) : anchors;
  for (const anchor of fetched) if (satisfiesTraits(anchor.traitIds, request.rootTraits)) yield anchor;
}

/**
 * The same roots as a list, where what is asked for is rare; root_required is not looked at.
 *
 * @returns undefined where it is not to be found in fewer places than the limit
 */
export function fewAnchors(
  fleet: Fleet,
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  sharing: Sharing,
  limit: number,
): readonly Provider[] | undefined {
  const few = rarest(fleet, request, limit);
  return few === undefined ? undefined : [...anchorsOf(few, sharing, 'steady')];
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
