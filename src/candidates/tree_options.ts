import { findingsOf, isAloneInTree, type Provider, treeOf } from '../fleet/provider.ts';
import { optionsByClass, satisfiesGroup } from './options.ts';
import type { ResolvedGroup } from './resolve.ts';

/**
 * For how many groups a tree caches its options: those of a few flavors. A request with more groups would push out its
 * own.
 */
export const keptGroups = 8;

/**
 * The options of a group in a tree: the providers of the tree that it may take from. For a granular group this is one
 * list, of the providers that satisfy it by themselves. For the group without suffix it is one list for each class, or
 * no list at all if a class has no provider.
 *
 * Options are cached with the tree: schedulers ask for the same flavors again and again, and from the second time on no
 * provider is looked at. A tree of one provider needs no cache.
 */
export function treeOptions(root: Provider, group: ResolvedGroup): readonly (readonly Provider[])[] {
  if (group.number === undefined || isAloneInTree(root)) return find(root, group);
  const findings = findingsOf(root);
  findings.options ??= [];
  const { options } = findings;
  for (const known of options) if (known.group === group.number) return known.providers;
  // A copy has no spare capacity, which would need as much memory as everything else that is cached with a tree.
  const providers = find(root, group).map((list) => list.slice());
  if (options.length >= keptGroups) options.shift();
  options.push({ group: group.number, providers });
  return providers;
}

const find = (root: Provider, group: ResolvedGroup): readonly (readonly Provider[])[] =>
  group.granular
    ? [treeOf(root).filter((provider) => satisfiesGroup(provider, group))]
    : optionsByClass(root, none, group);

const none: readonly never[] = [];
