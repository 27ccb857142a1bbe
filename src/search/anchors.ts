import type { Fleet } from '../fleet/model/fleet.ts';
import { inventoryOf, type Provider, treeOf } from '../fleet/model/provider.ts';
import type { Demand } from '../fleet/model/tree_room.ts';
import { sharingTrait } from '../placement/inventory.ts';
import { anyProvider, fewestFor, withTraits } from './filters.ts';
import { type VisitOrder, walk } from './order.ts';
import type { CandidateRequest } from './request.ts';
import type { ResolvedRequest } from './resolve.ts';

/** Which providers share with which trees, during one search. */
export type Sharing = {
  /** Whether the fleet has a sharing provider. */
  readonly exists: boolean;
  /** All sharing providers. */
  readonly providers: Iterable<Provider>;
  readonly isSharing: (provider: Provider) => boolean;
  /** The sharing providers of other trees that a tree may use: a provider of the tree is in one of their aggregates. */
  readonly usableBy: (root: Provider) => readonly Provider[];
  /** The roots of all trees that may use a sharing provider, also of its own tree; some come more than once. */
  readonly anchorsOf: (provider: Provider) => Iterable<Provider>;
};

/** Finds the sharing providers of a fleet. `usableBy` and `isSharing` still describe the same snapshot after the fleet has changed. */
export function sharingIn(fleet: Fleet): Sharing {
  const trait = fleet.traits.byName.get(sharingTrait)?.id ?? -1;
  const living = fleet.withTrait.of(trait);
  const providers: ReadonlySet<Provider> = living.size === 0 ? none : new Set(living);
  const byAggregate = new Map<string, Provider[]>();
  for (const provider of providers) {
    for (const aggregate of provider.aggregates) {
      const others = byAggregate.get(aggregate);
      if (others === undefined) byAggregate.set(aggregate, [provider]);
      else others.push(provider);
    }
  }
  const usableBy = (root: Provider): readonly Provider[] => {
    let found: Set<Provider> | undefined;
    for (const node of treeOf(root)) {
      for (const aggregate of node.aggregates) {
        for (const provider of byAggregate.get(aggregate) ?? noProviders) {
          if (provider.root === root) continue;
          found ??= new Set();
          found.add(provider);
        }
      }
    }
    return found === undefined ? noProviders : [...found];
  };
  return {
    exists: providers.size > 0,
    providers,
    isSharing: (provider) => providers.has(provider),
    usableBy: byAggregate.size === 0 ? () => noProviders : usableBy,
    anchorsOf: (provider) => sharedWith(fleet, provider),
  };
}

function* sharedWith({ inAggregate }: Fleet, provider: Provider): Generator<Provider> {
  yield provider.root;
  for (const aggregate of provider.aggregates) for (const member of inAggregate.of(aggregate)) yield member.root;
}

const noProviders: readonly Provider[] = [];
const none: ReadonlySet<Provider> = new Set();

/** The trees in which a search may look for candidates, by their roots. */
export type AllowedTrees = {
  /** Only these trees; undefined for all. */
  readonly only: ReadonlySet<Provider> | undefined;
  /** None of these trees, also if `only` has them. */
  readonly not: ReadonlySet<Provider>;
};

/** For a request without `with` and `apart_from`. */
export const allTrees: AllowedTrees = { only: undefined, not: new Set() };

/**
 * The trees that a request allows by `with` and `apart_from` (microversion 2.4).
 *
 * @param treesOf returns the roots of the trees in which a consumer holds something; its argument is the UUID as the
 *   client spells it
 */
export function allowedTreesOf(
  request: Pick<CandidateRequest, 'with' | 'apartFrom'>,
  treesOf: (consumer: string) => Iterable<Provider>,
): AllowedTrees {
  const together = request.with;
  return {
    only: together.length === 0 ? undefined : new Set(together.flatMap((consumer) => [...treesOf(consumer)])),
    not: new Set(request.apartFrom.flatMap((consumer) => [...treesOf(consumer)])),
  };
}

/**
 * The roots of the trees in which a consumer holds something. A provider that shares does not count, unless the consumer
 * holds something of such providers only.
 *
 * @param providers the providers of which the consumer holds something
 */
export function heldTrees(fleet: Fleet, providers: Iterable<Provider>): ReadonlySet<Provider> {
  const held = [...providers];
  if (held.length < 2) return new Set(held.map(({ root }) => root));
  const sharing = sharingIn(fleet);
  const own = held.filter((provider) => !sharing.isSharing(provider));
  return new Set((own.length > 0 ? own : held).map(({ root }) => root));
}

/**
 * The anchors of a request: the roots of the trees in which candidates are searched. Some anchors may have no candidate. If few
 * providers have something that every candidate needs, only the trees that can use these providers are visited; otherwise all
 * trees are.
 */
export function anchorsFor(
  fleet: Fleet,
  request: Pick<ResolvedRequest, 'groups' | 'rootTraits'>,
  sharing: Sharing,
  order: VisitOrder,
  tally?: Tally,
): IteratorObject<Provider> {
  const { roots } = fleet;
  const few = rarest(fleet, request, roots.length / 2);
  const ofFew = few === undefined ? undefined : () => anchorsOf(few.providers, sharing, order);
  // Listing very many anchors takes longer than finding some of them among all roots.
  const visitsAny = order === 'random' && few !== undefined && few.size > Math.max(mostListed, roots.length / 16);
  const first = ofFew === undefined || visitsAny ? walk(roots, order) : ofFew();
  const anchors = passingFullTrees(fleet, first, tally, () => {
    const roomy = fleet.treeRoom.meeting(
      demandsOf(request, sharing),
      Math.min(roots.length / 8, few?.size ?? Infinity),
    );
    return roomy !== undefined ? walk(roomy, order) : visitsAny ? ofFew?.() : undefined;
  });
  // In the other orders most successive providers are neighbours in memory: the processor prefetches these by itself.
  const fetched = order === 'random' ? prefetched(anchors) : anchors;
  const { required, forbidden } = request.rootTraits;
  // Most requests have no such filter: each generator between a tree and the answer takes time.
  if (required.length + forbidden.length === 0) return fetched;
  return fetched.filter(withTraits(request.rootTraits));
}

/** Listing this number of providers takes less time than visiting some hundred roots. */
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
 * sets to choose from: the providers with a class, with a required trait, in a required aggregate, or in the tree of `in_tree`.
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
function* anchorsOf(providers: Iterable<Provider>, sharing: Sharing, order: VisitOrder): Generator<Provider> {
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

/** Depends on all values that were read, so that the compiler cannot remove the reads. */
let seen = 0;

/**
 * The same anchors in the same order. Most of them are in the processor's cache when the caller takes them. A
 * candidate needs about ten reads of memory for each host, most of them at an address that another read has found. If
 * 100,000 hosts come in random order, the memory is in no cache, and the processor waits 0.1 us for each read, one after
 * the other. With prefetching the processor does the same read for several hosts at once. An answer with 100 candidates takes 0.25 ms
 * instead of 0.38 ms. With 1,000 hosts, which fit into the cache, nothing changes.
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
  for (const { generation, rootIndex } of providers) sum += generation + rootIndex;
  for (const { inventories, tree, uuid } of providers) sum += inventories.length + tree.length + uuid.length;
  for (const { inventories, cache } of providers) {
    for (const { used } of inventories) sum += used;
    sum += cache?.summary?.length ?? 0;
  }
  for (const { cache } of providers) {
    const summary = cache?.summary;
    if (summary === undefined) continue;
    for (let index = 0; index < Math.min(summary.length, 512); index += 64) sum += summary[index] ?? 0;
  }
  seen = (seen + sum) | 0;
}

/**
 * At most this number of trees is visited before the trees with room are looked up. Most queries find enough in these trees,
 * and need no lookup.
 */
const visitedFirst = 1024;

/** Counts the anchors at which the search found a candidate. */
export type Tally = { fitting: number };

/**
 * The room of all trees is looked up only if at most this share of the trees visited first had a candidate. Otherwise
 * the trees with room are probably many.
 */
const mostFitting = 1 / 8;

/**
 * Anchors in their order. After many of them were visited, `fewOfRest` may replace the rest by the few that have room
 * for the request. So most trees are never visited if the request fits nowhere, or almost nowhere.
 *
 * @param tally how many of these anchors had a candidate so far, if the search counts them
 * @param fewOfRest the anchors to continue with, in the same order; some may have been visited. Undefined if they are too many
 */
export function* passingFullTrees(
  { roots }: Pick<Fleet, 'roots'>,
  anchors: Iterable<Provider>,
  tally: Tally | undefined,
  fewOfRest: () => Iterable<Provider> | undefined,
): Generator<Provider> {
  const most = Math.min(visitedFirst, roots.length / 16);
  const visited: Provider[] = [];
  let isOpen = true;
  for (const anchor of anchors) {
    if (isOpen && visited.length >= most) {
      const rest = (tally?.fitting ?? 0) > visited.length * mostFitting ? undefined : fewOfRest();
      if (rest !== undefined) {
        const known = new Set(visited);
        for (const other of rest) if (!known.has(other)) yield other;
        return;
      }
      isOpen = false;
    }
    if (isOpen) visited.push(anchor);
    yield anchor;
  }
}

/**
 * The amounts that a tree must have free for all groups. A class that a sharing provider has is left out: the tree itself need
 * not have it.
 */
export function demandsOf({ groups }: Pick<ResolvedRequest, 'groups'>, sharing: Sharing): readonly Demand[] {
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
