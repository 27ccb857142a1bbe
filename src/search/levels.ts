import { aboveOf, type Provider, treeSize } from '../fleet/model/provider.ts';
import type { Pieces, Turns } from '../request/turns.ts';
import type { Sharing } from './anchors.ts';
import { type Choice, choicesFor, granularChoice, granularProviders } from './choices.ts';
import type { ProviderOrder } from './order.ts';
import type { Limits } from './request.ts';
import type { ResolvedGroup, ResolvedRequest } from './resolve.ts';

/** One level of the search at an anchor: a group of the request, for which a choice is made. */
export type Level = {
  /** The index of the group in the request. */
  readonly index: number;
  readonly group: ResolvedGroup;
  /**
   * The providers that a granular group may choose; they are iterated many times. None for the group without suffix.
   */
  readonly providers: readonly Provider[];
  /**
   * The choices of a granular group that were made so far, by the index of the provider; for most anchors only the
   * first.
   */
  readonly choices: Choice[];
  /**
   * The choices of the group without suffix. They are iterated once, since this group is the first level; there may be very many.
   */
  readonly generated: Iterator<Choice | undefined> | undefined;
};

/**
 * The levels at an anchor: first the group without suffix, then the granular groups, from the one with the fewest
 * choices to the one with the most. Undefined if a granular group has no choice there.
 */
export function levelsAt(
  anchor: Provider,
  { groups }: ResolvedRequest,
  sharing: Sharing,
  order: ProviderOrder,
  limits: Limits,
): readonly Level[] | undefined {
  const usable = sharing.usableBy(anchor);
  const levels: Level[] = [];
  for (const [index, group] of groups.entries()) {
    const level = levelOf(index, group, anchor, usable, order, limits);
    if (level === undefined) return undefined;
    levels.push(level);
  }
  return inSearchOrder(levels);
}

/** The same in pieces, for many groups and a large tree. */
export function* levelsInPieces(
  anchor: Provider,
  { groups }: ResolvedRequest,
  sharing: Sharing,
  order: ProviderOrder,
  limits: Limits,
): Pieces<readonly Level[] | undefined> {
  const usable = sharing.usableBy(anchor);
  const levels: Level[] = [];
  for (const [index, group] of groups.entries()) {
    const level = levelOf(index, group, anchor, usable, order, limits);
    if (level === undefined) return undefined;
    levels.push(level);
    if (limits.turns?.isOver(treeSize(anchor))) yield undefined;
  }
  return inSearchOrder(levels);
}

/** The level of a group; undefined for a granular group without a choice. */
function levelOf(
  index: number,
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: ProviderOrder,
  limits: Limits,
): Level | undefined {
  const { granular } = group;
  const providers = granular ? granularProviders(group, anchor, usable, order) : none;
  if (granular && providers.length === 0) return undefined;
  const generated = granular ? undefined : choicesFor(group, anchor, usable, order, limits)[Symbol.iterator]();
  return { index, group, providers, choices: [], generated };
}

const inSearchOrder = (levels: Level[]): readonly Level[] =>
  areSorted(levels) ? levels : levels.sort((a, b) => a.providers.length - b.providers.length);

/** Whether the levels are in order already. Then sorting is skipped, which takes as long as finding the choices. */
function areSorted(levels: readonly Level[]): boolean {
  let last = 0;
  for (const { providers } of levels) {
    if (providers.length < last) return false;
    last = providers.length;
  }
  return true;
}

/** For each group, by its index in the request, the depth of its choice: the number of choices that are made before. */
export const depthsOf = (levels: readonly Level[]): readonly number[] =>
  levels.map((_, index) => levels.findIndex((level) => level.index === index));

/** The next choice at a depth, undefined after the last one; `pause` where the turn of the search is over. */
export function choiceAt(level: Level | undefined, nextIndexes: number[], depth: number): Choice | 'pause' | undefined {
  if (level === undefined) return undefined;
  if (level.generated !== undefined) {
    const { done, value } = level.generated.next();
    return done ? undefined : (value ?? 'pause');
  }
  const index = nextIndexes[depth] ?? 0;
  nextIndexes[depth] = index + 1;
  return choiceOf(level, index);
}

/** A choice of a granular group; the same object on each call. */
function choiceOf({ group, providers, choices }: Level, index: number): Choice | undefined {
  const known = choices[index];
  const provider = providers[index];
  if (known !== undefined || provider === undefined) return known;
  const choice = granularChoice(group, provider);
  choices[index] = choice;
  return choice;
}

/** All choices of a granular group. None for the group without suffix, whose choices are generated. */
export function listed(level: Level | undefined): readonly Choice[] {
  if (level === undefined) return none;
  for (let index = level.choices.length; index < level.providers.length; index++) choiceOf(level, index);
  return level.choices;
}

const none: readonly never[] = [];

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

/**
 * Whether the chosen providers, together with one of each list of alternatives, can form a subtree.
 *
 * A hundred groups may have five hundred alternatives each, and each alternative may be the top. So the lists are not
 * visited once for each possible top: each list narrows the set of possible tops, until the set is empty or one of them
 * is found in a list.
 *
 * @param chosen providers that are in the subtree
 * @param alternatives one provider of each list will be in the subtree; each list is visited up to twice
 * @param members all providers that may be the top
 * @param turns the turns after which the work pauses
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

/** These providers, and all providers above one of them. */
function atOrAbove(providers: Iterable<Provider>): ReadonlySet<Provider> {
  const found = new Set<Provider>();
  for (const provider of providers) {
    for (let node: Provider | undefined = provider; node !== undefined && !found.has(node); node = aboveOf(node)) {
      found.add(node);
    }
  }
  return found;
}
