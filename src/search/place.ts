import type { Fleet } from '../fleet/model/fleet.ts';
import { type Provider, treeSize } from '../fleet/model/provider.ts';
import { atOnce } from '../request/turns.ts';
import { type AllowedTrees, type Sharing, sharingIn } from './anchors.ts';
import type { Candidate } from './choices.ts';
import { candidatesOf } from './combinations.ts';
import { type Condition, requestWith } from './conditions.ts';
import { satisfiesTraits } from './filters.ts';
import { type ProviderRank, walk } from './order.ts';
import { type CandidateRequest, overspends, type Work } from './request.ts';
import { type Resolution, type ResolvedRequest, resolveVariant } from './resolve.ts';
import { resolveForSearch } from './search.ts';
import { visitTrees } from './tree_visit.ts';

/** A candidate, and the root of the tree at which it was found. */
export type Place = { readonly anchor: Provider; readonly candidate: Candidate };

/** Where a place is searched for, and with which budget. */
export type PlaceOptions = {
  readonly allowed: AllowedTrees;
  readonly work: PlacingWork;
  readonly rank?: ProviderRank | undefined;
  /** Requests whose names were looked up already: most requests of a gang are equal. Do not use it after an await. */
  readonly known?: Map<CandidateRequest, Resolution>;
};

/** The budget of the search. `forLists`: steps for lists, which are counted separately, since later requests use the lists, too. */
export type PlacingWork = Work & { forLists: number };

/**
 * Finds one candidate of a request, the first by its `order`. Trees that are equal (without `order` all trees) are visited
 * in random order, so that requests at the same time, also of other processes, do not all choose the same tree.
 *
 * @returns `'too wide'` where the work was used up before a candidate was found
 * @throws ApiError 400 for classes and traits that do not exist
 */
export function findPlace(
  fleet: Fleet,
  request: CandidateRequest,
  options: PlaceOptions,
): Place | 'nowhere' | 'too wide' {
  const sharing = sharingIn(fleet);
  const spentBefore = stepsToMakeLists(fleet);
  try {
    return firstPlace(fleet, resolved(fleet, request, sharing, options), sharing, options);
  } finally {
    options.work.forLists += (stepsToMakeLists(fleet) - spentBefore) * fleet.roots.length;
  }
}

function resolved(
  fleet: Fleet,
  request: CandidateRequest,
  sharing: Sharing,
  { known, work }: Pick<PlaceOptions, 'known' | 'work'>,
): Resolution {
  const before = known?.get(request);
  if (before !== undefined) return before;
  const resolution = atOnce(resolveForSearch(fleet, request, sharing, { work }));
  // Whether a request has no candidates may depend on what is free.
  if (resolution !== 'nothing') known?.set(request, resolution);
  return resolution;
}

/** The cost of an order of all trees, and of a list of their room, in steps for each tree. */
const [stepsForOrder, stepsForRoom] = [15, 2];

/** The cost of all orders and lists that the fleet has made so far, in steps for each tree. */
const stepsToMakeLists = ({ treeOrders, treeRoom }: Fleet): number =>
  stepsForOrder * treeOrders.made + stepsForRoom * treeRoom.made;

function firstPlace(
  fleet: Fleet,
  resolved: Resolution,
  sharing: Sharing,
  { allowed, work, rank }: PlaceOptions,
): Place | 'nowhere' | 'too wide' {
  if (resolved === 'nothing') return 'nowhere';
  const { anchors, within } = visitTrees(fleet, resolved, sharing, { ties: 'random', allowed, rank });
  const candidatesAt = candidatesOf(resolved, sharing, within, { work });
  const isOrdered = resolved.order !== undefined || allowed.only !== undefined;
  for (const some of isOrdered ? [anchors] : [anyRoots(fleet, resolved, allowed), anchors]) {
    for (const anchor of some) {
      if (overspends(work, stepsAt(anchor, resolved.groups.length))) return 'too wide';
      for (const candidate of candidatesAt(anchor)) if (candidate !== undefined) return { anchor, candidate };
      if (work.steps < 0) return 'too wide';
    }
  }
  return 'nowhere';
}

/**
 * At most this number of roots is visited before the providers with the requested classes and traits are listed. If one root in
 * twenty fits, one of the visited roots nearly always fits, and a list of thousands would take longer than all other work.
 */
const visitedFirst = 64;

/** Some roots of the fleet, at random. */
function* anyRoots(
  { roots }: Fleet,
  { rootTraits }: Pick<ResolvedRequest, 'rootTraits'>,
  { not }: AllowedTrees,
): Generator<Provider> {
  let left = Math.min(visitedFirst, roots.length / 16);
  for (const root of walk(roots, 'random')) {
    if (--left < 0) return;
    if (!not.has(root) && satisfiesTraits(root.traitIds, rootTraits)) yield root;
  }
}

/** The cost of a tree before its first candidate, in steps. */
const stepsAt = (anchor: Provider, groups: number): number => treeSize(anchor) * groups * stepsAtProvider;
const stepsAtProvider = 5;

/** The cost of looking up the names of one condition, in steps. */
export const stepsToResolve = 10;

/**
 * The first condition of a query that no tree fits together with all before it, for a query that fits nowhere.
 *
 * @returns undefined where no single condition is the reason, or where the search for it takes too much work
 */
export function firstUnmet(
  fleet: Fleet,
  conditions: readonly Condition[],
  options: PlaceOptions,
): Condition | undefined {
  const sharing = sharingIn(fleet);
  for (const [index, condition] of conditions.entries()) {
    if (overspends(options.work, (index + 1) * stepsToResolve)) return undefined;
    const resolved = resolveVariant(fleet, requestWith(conditions.slice(0, index + 1)));
    const found = firstPlace(fleet, resolved, sharing, options);
    if (found === 'nowhere') return condition;
    if (found === 'too wide') return undefined;
  }
  return undefined;
}
