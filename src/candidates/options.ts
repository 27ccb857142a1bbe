import { hasAnyTrait, isInAny, isMemberOf, satisfiesTraits } from '../fleet/filters.ts';
import { inventoryOf, type Provider } from '../fleet/provider.ts';
import { hasRoomFor } from '../placement/inventory.ts';
import type { ResolvedGroup } from './resolve.ts';

/** Whether a provider by itself satisfies a granular group. */
export function satisfiesGroup(provider: Provider, group: ResolvedGroup): boolean {
  if (group.resources.length > 0) return satisfiesAlone(provider, group);
  // Upstream finds nobody for a group that asks for nothing but absence, and looks at no tree.
  const asksForNothing = group.traits.required.length === 0 && group.memberOf.length === 0;
  return !asksForNothing && isOfKind(provider, group);
}

/** Whether a provider by itself has everything that a group with resources asks for. */
export function satisfiesAlone(provider: Provider, group: ResolvedGroup): boolean {
  if (group.treeRoot !== undefined && provider.root !== group.treeRoot) return false;
  for (const { classId, amount } of group.resources) if (!hasRoom(provider, classId, amount)) return false;
  return isOfKind(provider, group);
}

/** Whether a provider has the traits and is in the aggregates that a group asks for. */
export const isOfKind = (provider: Provider, group: ResolvedGroup): boolean =>
  satisfiesTraits(provider.traitIds, group.traits) &&
  isMemberOf(provider, group.memberOf) &&
  !isInAny(provider, group.forbiddenAggregates);

function hasRoom(provider: Provider, classId: number, amount: number): boolean {
  const inventory = inventoryOf(provider, classId);
  return inventory !== undefined && hasRoomFor(inventory, amount);
}

/**
 * For each class of the group without suffix, the providers that a tree may take it from: its own, and those that share with
 * it. Being in an aggregate, the root speaks for its whole tree, which it does not for granular groups.
 *
 * @param usable the sharing providers of other trees that this one may use
 * @returns none where a class has none
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
    for (const provider of root.tree) {
      if (hasRoom(provider, classId, amount) && isAllowed(provider)) ofClass.push(provider);
    }
    if (group.treeRoot === undefined) {
      for (const provider of usable) {
        // A foreign provider must be a member itself.
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
