import type { Demand } from '../fleet/index/tree_room.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { inventoryOf, type Provider } from '../fleet/model/provider.ts';
import type { ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';

/**
 * At most this number of trees is visited before the trees that have room are looked up. Most queries are answered by
 * then, and the lookup costs them nothing.
 */
const triedFirst = 1024;

/** Counts the anchors at which the search found a candidate. */
export type Tally = { fitting: number };

/**
 * The room of all trees is looked up only if at most this share of the trees visited first had a candidate: the rest
 * is hardly few otherwise.
 */
const mostFitting = 1 / 8;

/**
 * Anchors in their order. After many of them were visited, `fewOfRest` may replace the rest by the few that have room
 * for the request. So most trees are never looked at if the request fits nowhere, or almost nowhere.
 *
 * @param tally what the search found so far at these anchors, if it tells
 * @param fewOfRest the anchors to go on with, in the same order; some may have been visited. Undefined if they are not
 *   few
 */
export function* passingFullTrees(
  { roots }: Pick<Fleet, 'roots'>,
  anchors: Iterable<Provider>,
  tally: Tally | undefined,
  fewOfRest: () => Iterable<Provider> | undefined,
): Generator<Provider> {
  const most = Math.min(triedFirst, roots.length / 16);
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
 * What a tree must have free for all groups. A class that a sharing provider has is left out: the tree itself may have
 * none of it.
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
