import type { Provider } from '../fleet/provider.ts';

/** Whether a provider is another one or below it. */
export function isWithin(provider: Provider, top: Provider): boolean {
  for (let node: Provider | undefined = provider; node !== undefined; node = node.parent) if (node === top) return true;
  return false;
}

/** Whether all providers of some lists are within one of them. */
export function isOneSubtree(lists: readonly (readonly Provider[])[]): boolean {
  for (const list of lists) for (const top of list) if (areWithin(lists, top)) return true;
  return false;
}

function areWithin(lists: readonly (readonly Provider[])[], top: Provider): boolean {
  for (const list of lists) for (const provider of list) if (!isWithin(provider, top)) return false;
  return true;
}

/**
 * Whether all providers of some lists, and one of each list of alternatives, can be one subtree.
 *
 * @param chosen who is in it
 * @param alternatives of each list one will be
 */
export function canBeOneSubtree(
  chosen: readonly (readonly Provider[])[],
  alternatives: readonly (readonly Provider[])[],
): boolean {
  const isTop = (top: Provider): boolean =>
    areWithin(chosen, top) && alternatives.every((list) => list.some((provider) => isWithin(provider, top)));
  return chosen.some((list) => list.some(isTop)) || alternatives.some((list) => list.some(isTop));
}
