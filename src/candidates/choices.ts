import { hasAnyTrait } from '../fleet/filters.ts';
import type { Provider } from '../fleet/provider.ts';
import { type Choice, granularChoice } from './candidate.ts';
import { optionsByClass, satisfiesAlone, satisfiesGroup } from './options.ts';
import { inOrder, type ProviderOrder } from './order.ts';
import type { ResolvedGroup } from './resolve.ts';
import { treeOptions } from './tree_options.ts';
import { isSpent, type Work } from './work.ts';

/**
 * What one group by itself may be satisfied with at an anchor: a list where they are few, of a granular group or of one choice;
 * others are generated, since they may be very many.
 *
 * @param usable the sharing providers of other trees that this one may use
 * @param work a bound of the caller: once it is used up no more choices come
 */
export function choicesFor(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: ProviderOrder,
  work?: Work,
): Iterable<Choice> {
  if (group.granular) {
    return granularProviders(group, anchor, usable, order).map((provider) => granularChoice(group, provider));
  }
  if (isAlone(anchor, usable)) {
    const choice = choiceAlone(group, anchor);
    return choice === undefined ? none : [choice];
  }
  const options = usable.length === 0 ? treeOptions(anchor, group) : optionsByClass(anchor, usable, group);
  if (options.length === 0) return none;
  const only = onlyProduct(options);
  if (only === undefined) {
    const goesOn = mayHaveTraits(options, group);
    return products(group, options, order, work === undefined ? goesOn : bounded(goesOn, work));
  }
  return haveTraits(only, group) ? [{ group, providers: only }] : none;
}

/** One of each list, where there is one way to take them; a generator for it would take longer than all else. */
function onlyProduct(options: readonly (readonly Provider[])[]): readonly Provider[] | undefined {
  const taken: Provider[] = [];
  for (const [provider, another] of options) {
    if (provider === undefined || another !== undefined) return undefined;
    taken.push(provider);
  }
  return taken;
}

/** Whether some providers together have the traits that a group requires. */
const haveTraits = (providers: readonly Provider[], { traits: { required } }: ResolvedGroup): boolean =>
  required.every((anyOf) => hasOne(providers, anyOf));

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
  // Of each trait, up to which place in the options somebody has it.
  const lastPlaces = required.map((anyOf) => options.findLastIndex((ofClass) => hasOne(ofClass, anyOf)));
  return (taken) => required.every((anyOf, place) => (lastPlaces[place] ?? -1) >= taken.length || hasOne(taken, anyOf));
}

/** The same judgement while there is work left, and then no. */
const bounded =
  (goesOn: ((taken: readonly Provider[]) => boolean) | undefined, work: Work) =>
  (taken: readonly Provider[]): boolean =>
    !isSpent(work, 1) && goesOn?.(taken) !== false;

const hasOne = (providers: readonly Provider[], anyOf: readonly number[]): boolean =>
  providers.some(({ traitIds }) => hasAnyTrait(traitIds, anyOf));

/**
 * The providers that are each a choice of a granular group. Unless keys order them, those of the tree come before those that share
 * with it.
 */
export function granularProviders(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: ProviderOrder,
): readonly Provider[] {
  const own = inOrder(treeOptions(anchor, group)[0] ?? none, order);
  if (usable.length === 0) return own;
  const others = usable.filter((provider) => satisfiesGroup(provider, group));
  // Keys compare all of them; else those that share come last.
  return typeof order === 'object' ? inOrder([...own, ...others], order) : [...own, ...inOrder(others, order)];
}

/**
 * All ways to take one of each list, of which none is empty; the last list turns fastest.
 *
 * @param goesOn whether what was taken of the first lists may lead to anything
 */
function* products(
  group: ResolvedGroup,
  lists: readonly (readonly Provider[])[],
  order: ProviderOrder,
  goesOn: ((taken: readonly Provider[]) => boolean) | undefined,
): Generator<Choice> {
  const wheels = order === 'steady' ? lists : lists.map((list) => inOrder(list, order));
  const turned = wheels.map(() => 0);
  const taken: Provider[] = [];
  for (;;) {
    const depth = taken.length;
    const next = turned[depth] ?? 0;
    const provider = wheels[depth]?.[next];
    if (provider === undefined) {
      if (depth === 0) return;
      turned[depth] = 0;
      taken.pop();
      continue;
    }
    turned[depth] = next + 1;
    taken.push(provider);
    if (goesOn?.(taken) === false) {
      taken.pop();
    } else if (taken.length === wheels.length) {
      yield { group, providers: taken.slice() };
      taken.pop();
    }
  }
}

const none: readonly never[] = [];

/** Whether a group without suffix has one choice at most at an anchor: a flat host, the most common case by far. */
export const isAlone = (anchor: Provider, usable: readonly Provider[]): boolean =>
  anchor.tree.length === 1 && usable.length === 0;

/** What a group without suffix takes of a flat host: all, or nothing. */
export const choiceAlone = (group: ResolvedGroup, anchor: Provider): Choice | undefined =>
  group.resources.length > 0 && satisfiesAlone(anchor, group)
    ? { group, providers: group.resources.map(() => anchor) }
    : undefined;
