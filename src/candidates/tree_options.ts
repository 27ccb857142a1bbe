import { findingsOf, type Provider } from '../fleet/provider.ts';
import { optionsByClass, satisfiesGroup } from './options.ts';
import type { ResolvedGroup } from './resolve.ts';

/** So many groups are kept of a tree: those of a few flavors. A request that has more would push out its own. */
export const keptGroups = 8;

/**
 * What a group may take from in a tree, sharing providers left aside: for a granular group one list of those that satisfy it
 * by themselves; for the group without suffix a list for each of its classes, or none where a class has nobody.
 *
 * It is kept with the tree: schedulers ask for the same flavors again and again, and a second time no provider is looked at.
 * Of a lone provider there is nothing to save.
 */
export function treeOptions(root: Provider, group: ResolvedGroup): readonly (readonly Provider[])[] {
  if (group.number === undefined || root.tree.length === 1) return find(root, group);
  const findings = findingsOf(root);
  findings.options ??= [];
  const { options } = findings;
  for (const known of options) if (known.group === group.number) return known.providers;
  // Copies have no room to grow, which would take as much memory as everything else that is kept of a tree.
  const providers = find(root, group).map((list) => list.slice());
  if (options.length >= keptGroups) options.shift();
  options.push({ group: group.number, providers });
  return providers;
}

const find = (root: Provider, group: ResolvedGroup): readonly (readonly Provider[])[] =>
  group.granular
    ? [root.tree.filter((provider) => satisfiesGroup(provider, group))]
    : optionsByClass(root, none, group);

const none: readonly never[] = [];
