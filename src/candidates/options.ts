import { hasAnyTrait, isInAny, isMemberOf, satisfiesTraits } from '../fleet/filters.ts';
import { inventoryOf, type Provider, treeOf } from '../fleet/provider.ts';
import { hasRoomFor } from '../placement/inventory.ts';
import type { ResolvedGroup } from './resolve.ts';

/** Whether a provider by itself satisfies a granular group. */
export function satisfiesGroup(provider: Provider, group: ResolvedGroup): boolean {
  if (group.resources.length > 0) return satisfiesAlone(provider, group);
  // Without resources upstream ignores `in_tree`, and finds no provider if no trait and no aggregate is required.
  const asksForNothing = group.traits.required.length === 0 && group.memberOf.length === 0;
  return !asksForNothing && isOfKind(provider, group);
}

/** Whether a provider by itself has everything that a group with resources asks for. */
export function satisfiesAlone(provider: Provider, group: ResolvedGroup): boolean {
  if (group.treeRoot !== undefined && provider.root !== group.treeRoot) return false;
  for (const { classId, amount } of group.resources) if (!hasRoom(provider, classId, amount)) return false;
  return isOfKind(provider, group);
}

/** Whether a provider has the traits and aggregates that a group requires, and none that it forbids. */
export const isOfKind = (provider: Provider, group: ResolvedGroup): boolean =>
  satisfiesTraits(provider.traitIds, group.traits) &&
  isMemberOf(provider, group.memberOf) &&
  !isInAny(provider, group.forbiddenAggregates);

function hasRoom(provider: Provider, classId: number, amount: number): boolean {
  const inventory = inventoryOf(provider, classId);
  return inventory !== undefined && hasRoomFor(inventory, amount);
}

/**
 * For each class of the group without suffix, the providers that a tree may take it from: its own, and those that share
 * with it. If the root is in an aggregate, its whole tree counts as being in it, which is not so for granular groups.
 *
 * @param usable the sharing providers of other trees that this one may use
 * @returns no list at all if a class has no provider
 */
export function optionsByClass(
  root: Provider,
  usable: readonly Provider[],
  group: ResolvedGroup,
): readonly (readonly Provider[])[] {
  if (group.treeRoot !== undefined && root !== group.treeRoot) return [];
  if (isInAny(root, group.forbiddenAggregates)) return [];
  const rootIsMember = isMemberOf(root, group.memberOf);
  const isAllowed = (provider: Provider): boolean =>
    (rootIsMember || isMemberOf(provider, group.memberOf)) &&
    !isInAny(provider, group.forbiddenAggregates) &&
    !hasAnyTrait(provider.traitIds, group.traits.forbidden);
  const options: Provider[][] = [];
  for (const { classId, amount } of group.resources) {
    const ofClass: Provider[] = [];
    for (const provider of treeOf(root)) {
      if (hasRoom(provider, classId, amount) && isAllowed(provider)) ofClass.push(provider);
    }
    if (group.treeRoot === undefined) {
      for (const provider of usable) {
        // A sharing provider must be in the aggregates itself.
        if (hasRoom(provider, classId, amount) && isMemberOf(provider, group.memberOf) && isAllowed(provider)) {
          ofClass.push(provider);
        }
      }
    }
    if (ofClass.length === 0) return [];
    options.push(ofClass);
  }
  return options;
}
