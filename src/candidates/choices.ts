import { hasAnyTrait } from '../fleet/filters.ts';
import type { Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';
import { optionsByClass, satisfiesAlone, satisfiesGroup } from './options.ts';
import { inOrder, type Order } from './order.ts';
import type { ResolvedGroup } from './resolve.ts';

/**
 * What one group by itself may be satisfied with at an anchor.
 *
 * @param usable the sharing providers of other trees that this one may use
 */
export function* choicesFor(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: Order,
): Generator<Choice> {
  if (group.granular) {
    yield* granularChoices(group, anchor, usable, order);
    return;
  }
  if (isAlone(anchor, usable)) {
    const choice = choiceAlone(group, anchor);
    if (choice !== undefined) yield choice;
    return;
  }
  const options = optionsByClass(anchor, usable, group);
  if (options === undefined) return;
  for (const providers of product(options, order, mayHaveTraits(options, group))) yield { group, providers };
}

/**
 * Whether the providers taken so far, with some of those that are still to be chosen from, may have the traits that a group
 * requires of all its providers together; once all are taken, whether they have. A trait that nobody has ends the
 * search at once: three classes on five hundred devices are 125 million ways to be without it.
 */
function mayHaveTraits(
  options: readonly (readonly Provider[])[],
  { traits: { required } }: ResolvedGroup,
): ((taken: readonly Provider[]) => boolean) | undefined {
  if (required.length === 0) return undefined;
  const has = (anyOf: readonly number[]) => (provider: Provider) => hasAnyTrait(provider.traitIds, anyOf);
  // Of each trait, up to which place in the options somebody has it.
  const lastPlaces = required.map((anyOf) => options.findLastIndex((ofClass) => ofClass.some(has(anyOf))));
  return (taken) =>
    required.every((anyOf, place) => (lastPlaces[place] ?? -1) >= taken.length || taken.some(has(anyOf)));
}

/** The choices of a granular group, each a provider by itself; those of the tree come before those that share with it. */
export function granularChoices(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: Order,
): readonly Choice[] {
  const choices = (providers: readonly Provider[]): Choice[] => {
    const found: Choice[] = [];
    for (const provider of providers) {
      if (satisfiesGroup(provider, group)) found.push({ group, providers: [provider] });
    }
    return found;
  };
  const own = inOrder(choices(anchor.tree), order);
  return usable.length === 0 ? own : [...own, ...inOrder(choices(usable), order)];
}

/**
 * All ways to take one of each list, of which none is empty; the last list turns fastest.
 *
 * @param goesOn whether what was taken of the first lists may lead to anything
 */
function* product<Item>(
  lists: readonly (readonly Item[])[],
  order: Order,
  goesOn?: (taken: readonly Item[]) => boolean,
): Generator<readonly Item[]> {
  const wheels = order === 'steady' ? lists : lists.map((list) => inOrder(list, order));
  const turned = wheels.map(() => 0);
  const taken: Item[] = [];
  for (;;) {
    const depth = taken.length;
    const next = turned[depth] ?? 0;
    const item = wheels[depth]?.[next];
    if (item === undefined) {
      if (depth === 0) return;
      turned[depth] = 0;
      taken.pop();
      continue;
    }
    turned[depth] = next + 1;
    taken.push(item);
    if (goesOn?.(taken) === false) {
      taken.pop();
    } else if (taken.length === wheels.length) {
      yield taken.slice();
      taken.pop();
    }
  }
}

/** Whether a group without suffix has one choice at most at an anchor: a flat host, the most common case by far. */
export const isAlone = (anchor: Provider, usable: readonly Provider[]): boolean =>
  anchor.tree.length === 1 && usable.length === 0;

/** What a group without suffix takes of a flat host: all, or nothing. */
export const choiceAlone = (group: ResolvedGroup, anchor: Provider): Choice | undefined =>
  group.resources.length > 0 && satisfiesAlone(anchor, group)
    ? { group, providers: group.resources.map(() => anchor) }
    : undefined;
