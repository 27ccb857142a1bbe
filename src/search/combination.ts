import type { Provider } from '../fleet/model/provider.ts';
import type { Pieces, Turns } from '../request/turns.ts';
import { type Choice, providerOf } from './choices.ts';
import { canBeOneSubtree, isOneSubtree, type Level, listed, providersAt } from './levels.ts';
import type { Occupancy, SharedUsage } from './occupancy.ts';

/** A combination of choices at an anchor, to which the search adds choices, and removes them again, level by level. */
export type Combination = {
  readonly levels: readonly Level[];
  /** The choices of the first levels, by depth. */
  readonly chosen: Choice[];
  readonly isolate: boolean;
  /** For each set of groups that must be one subtree, their depths, ascending. */
  readonly subtrees: readonly (readonly number[])[];
  readonly usage: SharedUsage;
  readonly occupancy: Occupancy;
  /** For each set in `subtrees`, all providers that may be its top; filled when first needed. */
  readonly tops: Set<Provider>[];
};

/** Whether a choice can be added to the choices that are made. */
export const isPossible = ({ occupancy, usage }: Combination, choice: Choice): boolean =>
  occupancy.allows(choice) && usage.fits(choice);

/** Adds a choice, which must be possible. */
export function take({ chosen, occupancy, usage }: Combination, choice: Choice): void {
  chosen.push(choice);
  occupancy.add(choice);
  usage.take(choice);
}

/** Removes the last choice. @returns false if there is none */
export function giveBack({ chosen, occupancy, usage }: Combination): boolean {
  const last = chosen.pop();
  if (last === undefined) return false;
  occupancy.remove(last);
  usage.giveBack(last);
  return true;
}

/** Whether each set of groups that the last choice completed is one subtree. */
export function satisfiesSubtrees({ subtrees, chosen }: Combination): boolean {
  for (const depths of subtrees) {
    if (depths.at(-1) === chosen.length - 1 && !isOneSubtree(chosen, depths)) return false;
  }
  return true;
}

/**
 * Whether a combination cannot be completed, as far as this can be known without trying: true is certain, false is not.
 *
 * @param turns the turns after which the work pauses
 */
export function* isDeadEnd(combination: Combination, turns: Turns | undefined): Pieces<boolean> {
  const { levels, chosen, subtrees, usage, isolate } = combination;
  const open: (readonly Choice[] | undefined)[] = [];
  const openAt = (depth: number): readonly Choice[] => {
    const known = open[depth] ?? listed(levels[depth]).filter((choice) => isPossible(combination, choice));
    open[depth] = known;
    return known;
  };
  // The subtrees first: this check is cheaper, since it often needs only one of the lists of choices.
  for (const [index, set] of subtrees.entries()) {
    const inside = set.map((depth) => providersAt(chosen, depth));
    const alternatives = set
      .filter((depth) => depth >= chosen.length)
      .map((depth) => ({ [Symbol.iterator]: () => providersOf(openAt(depth)).values() }));
    const tops = yield* possibleTops(combination, index, set, turns);
    if (!(yield* canBeOneSubtree(inside, alternatives, tops, turns))) return true;
  }
  const undecided: (readonly Choice[])[] = [];
  for (let depth = chosen.length; depth < levels.length; depth += 1) {
    if (levels[depth]?.group.granular !== true) continue;
    undecided.push(openAt(depth));
    if (turns?.isOver(openAt(depth).length)) yield undefined;
  }
  return !(yield* canBeServed(undecided, usage, isolate, turns));
}

/** All providers that may be the top of a set of groups. Computed when first needed: for most anchors it is not. */
function* possibleTops(
  { levels, tops }: Combination,
  index: number,
  set: readonly number[],
  turns: Turns | undefined,
): Pieces<ReadonlySet<Provider>> {
  const known = tops[index];
  if (known !== undefined) return known;
  const found = new Set<Provider>();
  for (const depth of set) {
    const choices = listed(levels[depth]);
    for (const { providers } of choices) for (const provider of providers) found.add(provider);
    if (turns?.isOver(choices.length)) yield undefined;
  }
  tops[index] = found;
  return found;
}

/**
 * Whether some granular groups can all be served, judged by one rule at a time: false is certain, true is not. With
 * isolation each group needs a different provider. Without it, for each class that several groups ask for, the
 * providers must have enough for that number of groups. Both rules are a matching of groups to providers. It is found or
 * ruled out without trying every combination: eight groups for seven devices are refused at once.
 *
 * @param groups for each group its choices that are still possible
 */
function* canBeServed(
  groups: readonly (readonly Choice[])[],
  usage: SharedUsage,
  isolate: boolean,
  turns: Turns | undefined,
): Pieces<boolean> {
  if (groups.some((choices) => choices.length === 0)) return false;
  if (isolate) return yield* canMatch(groups, () => 1, turns);
  for (const classId of usage.classes) {
    const amounts: number[] = [];
    const asking = groups.filter(([choice]) => {
      const amount = choice?.group.resources.find((resource) => resource.classId === classId)?.amount;
      if (amount !== undefined) amounts.push(amount);
      return amount !== undefined;
    });
    const least = Math.min(...amounts);
    const mostAt = (provider: Provider): number => Math.floor(usage.left(provider, classId) / least);
    if (!(yield* canMatch(asking, mostAt, turns))) return false;
  }
  return true;
}

const providersOf = (choices: readonly Choice[]): readonly Provider[] => choices.flatMap(({ providers }) => providers);

/**
 * Whether each group can get one of its providers, if a provider takes a limited number of groups. Groups are matched
 * one after the other by augmenting paths (Kuhn): a group that has a provider moves to another provider where that makes
 * room. Paths are searched breadth first, since recursion could be hundreds of calls deep.
 *
 * @param options for each group its possible choices, each of one provider
 * @param mostAt how many groups a provider takes
 */
function* canMatch(
  options: readonly (readonly Choice[])[],
  mostAt: (provider: Provider) => number,
  turns: Turns | undefined,
): Pieces<boolean> {
  const groupsAt = new Map<Provider, Set<number>>();
  const providerAt = new Map<number, Provider>();
  /** @param movers the group that moves to each provider, if the provider gets room */
  const moveAlong = (free: Provider, movers: ReadonlyMap<Provider, number>): void => {
    for (let provider: Provider | undefined = free; provider !== undefined; ) {
      const group = movers.get(provider);
      if (group === undefined) return;
      const left = providerAt.get(group);
      if (left !== undefined) groupsAt.get(left)?.delete(group);
      providerAt.set(group, provider);
      const there = groupsAt.get(provider);
      if (there === undefined) groupsAt.set(provider, new Set([group]));
      else there.add(group);
      provider = left;
    }
  };
  for (const added of options.keys()) {
    const movers = new Map<Provider, number>();
    const toMove = [added];
    let free: Provider | undefined;
    for (const group of toMove) {
      const choices = options[group] ?? [];
      if (turns?.isOver(choices.length)) yield undefined;
      for (const choice of choices) {
        const provider = providerOf(choice, 0);
        if (provider === undefined || movers.has(provider)) continue;
        movers.set(provider, group);
        const there = groupsAt.get(provider);
        if ((there?.size ?? 0) < mostAt(provider)) {
          free = provider;
          break;
        }
        for (const other of there ?? []) toMove.push(other);
      }
      if (free !== undefined) break;
    }
    if (free === undefined) return false;
    moveAlong(free, movers);
  }
  return true;
}
