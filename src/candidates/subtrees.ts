import { aboveOf, type Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';

/** Whether a provider is another one or below it. */
function isWithin(provider: Provider, top: Provider): boolean {
  for (let node: Provider | undefined = provider; node !== undefined; node = aboveOf(node))
    if (node === top) return true;
  return false;
}

/** Whether all providers of the choices at some depths are within one of them. */
export function isOneSubtree(chosen: readonly Choice[], depths: readonly number[]): boolean {
  let top: Provider | undefined;
  for (const depth of depths) {
    for (const provider of providersAt(chosen, depth)) {
      if (top === undefined || isWithin(top, provider)) top = provider;
    }
  }
  if (top === undefined) return false;
  for (const depth of depths) {
    for (const provider of providersAt(chosen, depth)) if (!isWithin(provider, top)) return false;
  }
  return true;
}

/** The providers of the choice at a depth, none where it is not made. */
export const providersAt = (chosen: readonly Choice[], depth: number): readonly Provider[] =>
  chosen[depth]?.providers ?? none;

const none: readonly never[] = [];

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
