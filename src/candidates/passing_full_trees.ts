import type { Fleet } from '../fleet/fleet.ts';
import { inventoryOf, type Provider } from '../fleet/provider.ts';
import type { Demand } from '../fleet/tree_room.ts';
import type { ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';

/**
 * So many trees are visited before those that have room are looked up. Most queries are answered by then, and pay nothing for it.
 */
const triedFirst = 1024;

/**
 * Anchors in their order. When many of them were visited, only those of the rest follow that have room for the request: where it
 * fits nowhere, or almost nowhere, most trees are never looked at.
 *
 * @param fewOfRest the rest where it is short, in the same order; it may have anchors that were visited
 */
export function* passingFullTrees(
  { roots }: Pick<Fleet, 'roots'>,
  anchors: Iterable<Provider>,
  fewOfRest: () => Iterable<Provider> | undefined,
): Generator<Provider> {
  const most = Math.min(triedFirst, roots.length / 16);
  const visited: Provider[] = [];
  let isOpen = true;
  for (const anchor of anchors) {
    if (isOpen && visited.length >= most) {
      const rest = fewOfRest();
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

/** What a tree must have free for all groups. Of what is also shared it may have nothing. */
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
