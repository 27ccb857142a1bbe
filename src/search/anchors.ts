import { anyProvider, fewestFor, withTraits } from '../fleet/model/filters.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import type { Provider } from '../fleet/model/provider.ts';
import { type Order, walk } from './order.ts';
import { demandsOf, passingFullTrees, type Tally } from './passing_full_trees.ts';
import type { ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';

/**
 * The anchors of a request: the roots of the trees in which candidates are searched. Some of them may have none. If few
 * providers have something that every candidate needs, only the trees that can use these are visited; otherwise all
 * trees are.
 */
export function anchorsFor(
  fleet: Fleet,
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  sharing: Sharing,
  order: Order,
  tally?: Tally,
): IteratorObject<Provider> {
  const { roots } = fleet;
  const few = rarest(fleet, request, roots.length / 2);
  const ofFew = few === undefined ? undefined : () => anchorsOf(few.providers, sharing, order);
  // To list very many anchors takes longer than to find some of them among all roots.
  const triesAny = order === 'random' && few !== undefined && few.size > Math.max(mostListed, roots.length / 16);
  const first = ofFew === undefined || triesAny ? walk(roots, order) : ofFew();
  const anchors = passingFullTrees(fleet, first, tally, () => {
    const roomy = fleet.treeRoom.meeting(
      demandsOf(request, sharing),
      Math.min(roots.length / 8, few?.size ?? Infinity),
    );
    return roomy !== undefined ? walk(roomy, order) : triesAny ? ofFew?.() : undefined;
  });
  // In the other orders, mostly neighbours in memory follow each other, which the processor loads ahead by itself.
  const fetched = order === 'random' ? prefetched(anchors) : anchors;
  const { required, forbidden } = request.rootTraits;
  // Most requests have no such filter: each generator between a tree and the answer takes time.
  if (required.length + forbidden.length === 0) return fetched;
  return fetched.filter(withTraits(request.rootTraits));
}

/** To list so many providers takes less time than to try some hundred roots. */
const mostListed = 4096;

/**
 * The anchors as a list, if the request needs something that few providers have. `root_required` is not checked.
 *
 * @returns undefined if no such set of providers is smaller than the limit
 */
export function fewAnchors(
  fleet: Fleet,
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  sharing: Sharing,
  limit: number,
): readonly Provider[] | undefined {
  const few = rarest(fleet, request, limit);
  return few === undefined ? undefined : [...anchorsOf(few.providers, sharing, 'steady')];
}

/**
 * The smallest set of providers such that each candidate uses one of them, or has one in the tree of its anchor. The
 * sets are the providers with a class, with a required trait or in a required aggregate, and the tree that `in_tree`
 * names.
 *
 * @returns undefined if no set is smaller than the limit
 */
function rarest(
  fleet: Fleet,
  { groups, rootTraits }: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  limit: number,
): { readonly size: number; readonly providers: Iterable<Provider> } | undefined {
  let fewest = fewestFor(fleet, { ...anyProvider, traits: rootTraits }, { size: limit, list: undefined });
  for (const group of groups) {
    // Without resources the tree that a group names is ignored.
    const filter = group.resources.length > 0 ? group : { ...group, treeRoot: undefined };
    fewest = fewestFor(fleet, filter, fewest);
  }
  const { size, list } = fewest;
  return list && { size, providers: list() };
}

/** The anchors of the trees that can use at least one of these providers, each once. */
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

/**
 * How many hosts are read at once. A processor loads about ten cache lines at a time; with 8 hosts it takes a tenth
 * longer.
 */
const readAtOnce = 16;

/** Depends on all that was read, so that the compiler cannot leave out the reads. */
let seen = 0;

/**
 * The same anchors in the same order, most of which are in the processor's cache when the caller takes them. A
 * candidate needs about ten places in memory for each host, most of them found by following another one. If 100,000
 * hosts come in random order, these are in no cache, and the processor waits 0.1 us for each place, one after the
 * other. Here it loads the same place of several hosts at once. An answer with 100 candidates takes 0.25 ms instead of
 * 0.38 ms. With 1,000 hosts, which fit into the cache, nothing changes.
 */
function* prefetched(anchors: Iterable<Provider>): Generator<Provider> {
  let ahead: Provider[] = [];
  for (const anchor of anchors) {
    ahead.push(anchor);
    if (ahead.length < readAtOnce) continue;
    read(ahead);
    for (const fetched of ahead) yield fetched;
    ahead = [];
  }
  for (const anchor of ahead) yield anchor;
}

/**
 * Reads what candidates need of these providers, in steps: each step reads, for all of them, what the step before
 * found.
 */
function read(providers: readonly Provider[]): void {
  let sum = 0;
  for (const { generation, rootPlace } of providers) sum += generation + rootPlace;
  for (const { inventories, tree, uuid } of providers) sum += inventories.length + tree.length + uuid.length;
  for (const { inventories, findings } of providers) {
    for (const { used } of inventories) sum += used;
    sum += findings?.summary?.length ?? 0;
  }
  for (const { findings } of providers) {
    const summary = findings?.summary;
    if (summary === undefined) continue;
    for (let place = 0; place < Math.min(summary.length, 512); place += 64) sum += summary[place] ?? 0;
  }
  seen = (seen + sum) | 0;
}
