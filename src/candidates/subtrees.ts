import { aboveOf, type Provider } from '../fleet/provider.ts';
import type { Pieces, Turns } from '../rest/pieces.ts';
import type { Choice } from './candidate.ts';

/** Whether a provider is `top` or is below it. */
function isWithin(provider: Provider, top: Provider): boolean {
  for (let node: Provider | undefined = provider; node !== undefined; node = aboveOf(node))
    if (node === top) return true;
  return false;
}

/** Whether the choices at these depths form a subtree: one of their providers is the top, all others are below it. */
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

/** The providers of the choice at a depth; none if it is not made yet. */
export const providersAt = (chosen: readonly Choice[], depth: number): readonly Provider[] =>
  chosen[depth]?.providers ?? none;

const none: readonly never[] = [];

/**
 * Whether the chosen providers, together with one of each list of alternatives, can form a subtree.
 *
 * A hundred groups may have five hundred alternatives each, and each of these may be the top. So the lists are not
 * visited once for each possible top: each list narrows the set of possible tops, until the set is empty or one of them
 * is found in a list.
 *
 * @param chosen providers that are in the subtree
 * @param alternatives one provider of each list will be in the subtree; each list is visited up to twice
 * @param members all providers that may be the top
 * @param turns those after which the work pauses
 */
export function* canBeOneSubtree(
  chosen: readonly (readonly Provider[])[],
  alternatives: readonly Iterable<Provider>[],
  members: ReadonlySet<Provider>,
  turns?: Turns,
): Pieces<boolean> {
  const inside = new Set(chosen.flat());
  let tops = members;
  for (const provider of inside) tops = tops.intersection(atOrAbove([provider]));
  for (const list of alternatives) {
    if (tops.size === 0) return false;
    const reached = atOrAbove(list);
    tops = tops.intersection(reached);
    if (turns?.isOver(reached.size)) yield undefined;
  }
  for (const top of tops) if (inside.has(top)) return true;
  for (const list of alternatives) {
    let passed = 1;
    for (const provider of list) {
      if (tops.has(provider)) return true;
      passed += 1;
    }
    if (turns?.isOver(passed)) yield undefined;
  }
  return false;
}

/** These providers and all that are above one of them. */
function atOrAbove(providers: Iterable<Provider>): ReadonlySet<Provider> {
  const found = new Set<Provider>();
  for (const provider of providers) {
    for (let node: Provider | undefined = provider; node !== undefined && !found.has(node); node = aboveOf(node)) {
      found.add(node);
    }
  }
  return found;
}
