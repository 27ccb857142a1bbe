import { cacheOf, isAloneInTree, type Provider, treeOf } from '../fleet/model/provider.ts';
import type { Turns } from '../request/turns.ts';
import { hasAny, hasRoom, isInAny, isMemberOf, isOfKind, satisfiesAlone } from './filters.ts';
import { orderProviders, type ProviderOrder } from './order.ts';
import { type Limits, overspends, type Work } from './request.ts';
import { cachedGroups, type ResolvedGroup } from './resolve.ts';

// Choices and candidates

/** How one group is satisfied: by a provider for each of its resources, in order; a granular group by one provider. */
export type Choice = {
  readonly group: ResolvedGroup;
  readonly providers: readonly Provider[];
};

/** A choice of a granular group. */
export const granularChoice = (group: ResolvedGroup, provider: Provider): Choice => ({ group, providers: [provider] });

/** A candidate: a choice for each group of the request. */
export type Candidate = readonly Choice[];

/** The provider of one of the group's resources. */
export const providerOf = ({ group, providers }: Choice, index: number): Provider | undefined =>
  providers[group.granular ? 0 : index];

/** The amounts that a candidate takes from each provider, by class id: for a class of several groups, the sum. */
export function takenByProvider(candidate: Candidate): ReadonlyMap<Provider, ReadonlyMap<number, number>> {
  const amounts = new Map<Provider, Map<number, number>>();
  for (const choice of candidate) {
    for (const [index, { classId, amount }] of choice.group.resources.entries()) {
      const provider = providerOf(choice, index);
      if (provider === undefined) continue;
      const ofProvider = amounts.get(provider) ?? new Map<number, number>();
      amounts.set(provider, ofProvider.set(classId, (ofProvider.get(classId) ?? 0) + amount));
    }
  }
  return amounts;
}

// The choices of a group

/**
 * The choices of one group at an anchor, whatever the other groups take. They are a list for a granular group, and if
 * there is at most one. Otherwise they are generated, since there may be very many.
 *
 * @param usable the sharing providers of other trees that this one may use
 * @param limits when the work is used up, no more choices come; where a turn is over, undefined comes instead of a choice
 */
export function choicesFor(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: ProviderOrder,
  { work, turns }: Limits,
): Iterable<Choice | undefined> {
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
    const canSucceed = mayHaveTraits(options, group);
    return products(group, options, order, work === undefined ? canSucceed : bounded(canSucceed, work), turns);
  }
  return haveTraits(only, group) ? [{ group, providers: only }] : none;
}

/** The provider of each list, if each list has only one: in this case a generator would take longer than all other work. */
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
 * Creates a check for the traits that a group requires of all its providers together: whether the providers taken so
 * far, together with providers of the remaining lists, may have them. When one of each list is taken, it is exact. If
 * no provider has a required trait, the search ends at once: three classes, each with five hundred devices, have 125
 * million combinations without that trait.
 */
function mayHaveTraits(
  options: readonly (readonly Provider[])[],
  { traits: { required } }: ResolvedGroup,
): ((taken: readonly Provider[]) => boolean) | undefined {
  if (required.length === 0) return undefined;
  // For each required trait, the last list in which a provider has it.
  const lastIndexes = required.map((anyOf) => options.findLastIndex((ofClass) => hasOne(ofClass, anyOf)));
  return (taken) =>
    required.every((anyOf, index) => (lastIndexes[index] ?? -1) >= taken.length || hasOne(taken, anyOf));
}

/** The same check, which fails as soon as the budget is used up. */
const bounded =
  (canSucceed: ((taken: readonly Provider[]) => boolean) | undefined, work: Work) =>
  (taken: readonly Provider[]): boolean =>
    !overspends(work, 1) && canSucceed?.(taken) !== false;

const hasOne = (providers: readonly Provider[], anyOf: readonly number[]): boolean =>
  providers.some(({ traitIds }) => hasAny(traitIds, anyOf));

/**
 * The providers that are each a choice of a granular group. Unless keys order them, the providers of the tree come before the sharing
 * providers of other trees.
 */
export function granularProviders(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: ProviderOrder,
): readonly Provider[] {
  const own = orderProviders(treeOptions(anchor, group)[0] ?? none, order);
  if (usable.length === 0) return own;
  const others = usable.filter((provider) => satisfiesGroup(provider, group));
  // Keys compare all providers; without keys the sharing providers come last.
  return typeof order === 'object' && order.keys.length > 0
    ? orderProviders([...own, ...others], order)
    : [...own, ...orderProviders(others, order)];
}

/**
 * All ways to take one provider of each list; no list is empty. The provider of the last list changes first.
 *
 * @param canSucceed whether the providers taken of the first lists may lead to a choice
 */
function* products(
  group: ResolvedGroup,
  lists: readonly (readonly Provider[])[],
  order: ProviderOrder,
  canSucceed: ((taken: readonly Provider[]) => boolean) | undefined,
  turns: Turns | undefined,
): Generator<Choice | undefined> {
  const roundsOfStep = 1 + group.traits.required.length;
  const ordered = order === 'steady' ? lists : lists.map((list) => orderProviders(list, order));
  const nextIndexes = ordered.map(() => 0);
  const taken: Provider[] = [];
  for (;;) {
    if (turns?.isOver(roundsOfStep)) yield undefined;
    const depth = taken.length;
    const next = nextIndexes[depth] ?? 0;
    const provider = ordered[depth]?.[next];
    if (provider === undefined) {
      if (depth === 0) return;
      nextIndexes[depth] = 0;
      taken.pop();
      continue;
    }
    nextIndexes[depth] = next + 1;
    taken.push(provider);
    if (canSucceed?.(taken) === false) {
      taken.pop();
    } else if (taken.length === ordered.length) {
      yield { group, providers: taken.slice() };
      taken.pop();
    }
  }
}

const none: readonly never[] = [];

/**
 * Whether a tree is a single provider, with which no other tree shares: a flat host, by far the most common case. There
 * a group without suffix has one choice at most.
 */
export const isAlone = (anchor: Provider, usable: readonly Provider[]): boolean =>
  isAloneInTree(anchor) && usable.length === 0;

/** The choice of a group without suffix at a flat host: the host for all its classes. */
export const choiceAlone = (group: ResolvedGroup, anchor: Provider): Choice | undefined =>
  group.resources.length > 0 && satisfiesAlone(anchor, group)
    ? { group, providers: group.resources.map(() => anchor) }
    : undefined;

// Options

/**
 * The options of a group in a tree: the providers of the tree that it may take from. For a granular group this is one
 * list, of the providers that satisfy it by themselves. For the group without suffix it is one list for each class, or
 * no list at all if a class has no provider.
 *
 * Options are cached with the tree: schedulers query the same flavors again and again, and from the second query on no
 * provider is checked. A tree of one provider needs no cache.
 */
function treeOptions(root: Provider, group: ResolvedGroup): readonly (readonly Provider[])[] {
  if (group.number === undefined || isAloneInTree(root)) return find(root, group);
  const cache = cacheOf(root);
  cache.options ??= [];
  const { options } = cache;
  for (const known of options) if (known.group === group.number) return known.providers;
  // A copy has no unused capacity, which would need as much memory as the rest of the cache of a tree.
  const providers = find(root, group).map((list) => list.slice());
  if (options.length >= cachedGroups) options.shift();
  options.push({ group: group.number, providers });
  return providers;
}

const find = (root: Provider, group: ResolvedGroup): readonly (readonly Provider[])[] =>
  group.granular
    ? [treeOf(root).filter((provider) => satisfiesGroup(provider, group))]
    : optionsByClass(root, none, group);

/** Whether a provider by itself satisfies a granular group. */
function satisfiesGroup(provider: Provider, group: ResolvedGroup): boolean {
  if (group.resources.length > 0) return satisfiesAlone(provider, group);
  // Without resources upstream ignores `in_tree`, and finds no provider if no trait and no aggregate is required.
  const isEmpty = group.traits.required.length === 0 && group.memberOf.length === 0;
  return !isEmpty && isOfKind(provider, group);
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
    !hasAny(provider.traitIds, group.traits.forbidden);
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
