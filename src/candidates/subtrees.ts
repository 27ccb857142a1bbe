import { aboveOf, type Provider } from '../fleet/provider.ts';

/** Whether a provider is another one or below it. */
function isWithin(provider: Provider, top: Provider): boolean {
  for (let node: Provider | undefined = provider; node !== undefined; node = aboveOf(node))
    if (node === top) return true;
  return false;
}

/** Whether all providers of some lists are within one of them. */
export function isOneSubtree(lists: readonly (readonly Provider[])[]): boolean {
  let top: Provider | undefined;
  for (const list of lists) {
    for (const provider of list) if (top === undefined || isWithin(top, provider)) top = provider;
  }
  if (top === undefined) return false;
  for (const list of lists) for (const provider of list) if (!isWithin(provider, top)) return false;
  return true;
}

/**
 * Whether all providers of some lists, and one of each list of alternatives, can be one subtree.
 *
 * A hundred groups may have five hundred alternatives each, of which any could be the top: so each list is gone through once,
 * not once for each top, and no more of them once there is no top left.
 *
 * @param chosen who is in it
 * @param alternatives of each list one will be; gone through twice
 * @param members all who may ever be the top
 */
export function canBeOneSubtree(
  chosen: readonly (readonly Provider[])[],
  alternatives: readonly Iterable<Provider>[],
  members: ReadonlySet<Provider>,
): boolean {
  const inside = new Set(chosen.flat());
  let tops = members;
  for (const provider of inside) tops = tops.intersection(atOrAbove([provider]));
  for (const list of alternatives) {
    if (tops.size === 0) return false;
    tops = tops.intersection(atOrAbove(list));
  }
  for (const top of tops) if (inside.has(top)) return true;
  for (const list of alternatives) for (const provider of list) if (tops.has(provider)) return true;
  return false;
}

/** All that have one of the providers within. */
function atOrAbove(providers: Iterable<Provider>): ReadonlySet<Provider> {
  const found = new Set<Provider>();
  for (const provider of providers) {
    for (let node: Provider | undefined = provider; node !== undefined && !found.has(node); node = aboveOf(node)) {
      found.add(node);
    }
  }
  return found;
}
