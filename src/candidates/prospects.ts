import type { Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';
import { type Combination, isPossible } from './combination.ts';
import type { SharedUsage } from './shared_usage.ts';
import { listed } from './steps.ts';
import { canBeOneSubtree, providersAt } from './subtrees.ts';

/** Whether a combination may still be completed, as far as can be told without trying: false is certain, true is not. */
export function hasProspects(combination: Combination): boolean {
  const { steps, chosen, subtrees, usage, isolate } = combination;
  const open: (readonly Choice[] | undefined)[] = [];
  const openAt = (depth: number): readonly Choice[] => {
    const known = open[depth] ?? listed(steps[depth]).filter((choice) => isPossible(combination, choice));
    open[depth] = known;
    return known;
  };
  // The cheaper one first: it often needs one of the lists only.
  for (const [place, set] of subtrees.entries()) {
    const inside = set.map((depth) => providersAt(chosen, depth));
    const alternatives = set
      .filter((depth) => depth >= chosen.length)
      .map((depth) => ({ [Symbol.iterator]: () => providersOf(openAt(depth)).values() }));
    if (!canBeOneSubtree(inside, alternatives, possibleTops(combination, place, set))) return false;
  }
  const undecided = steps.flatMap(({ group }, depth) =>
    depth >= chosen.length && group.granular ? [openAt(depth)] : [],
  );
  return haveProspects(undecided, usage, isolate);
}

/** All who may be the top of a set; made when they are first asked for, since most anchors need no look. */
function possibleTops({ steps, tops }: Combination, place: number, set: readonly number[]): ReadonlySet<Provider> {
  const known = tops[place] ?? new Set(set.flatMap((depth) => providersOf(listed(steps[depth]))));
  tops[place] = known;
  return known;
}

/**
 * Whether some granular groups could all be satisfied, judged by one rule at a time: false is certain, true is not. With
 * isolation each needs a provider of its own; else, of each class that several ask for, the providers must have enough for
 * as many as ask. Either is a matching of groups to providers, which is found or refuted without trying every combination:
 * eight groups for seven devices are refused at once.
 *
 * @param groups the choices of each, of those that are possible
 */
function haveProspects(groups: readonly (readonly Choice[])[], usage: SharedUsage, isolate: boolean): boolean {
  if (groups.some((choices) => choices.length === 0)) return false;
  if (isolate) return canSeat(groups.map(providersOf), () => 1);
  return [...usage.classes].every((classId) => {
    const amounts: number[] = [];
    const asking = groups.filter(([choice]) => {
      const amount = choice?.group.resources.find((resource) => resource.classId === classId)?.amount;
      if (amount !== undefined) amounts.push(amount);
      return amount !== undefined;
    });
    const least = Math.min(...amounts);
    return canSeat(asking.map(providersOf), (provider) => Math.floor(usage.left(provider, classId) / least));
  });
}

const providersOf = (choices: readonly Choice[]): readonly Provider[] => choices.flatMap(({ providers }) => providers);

/**
 * Whether everybody finds a seat at one of the providers they would go to: by augmenting paths (Kuhn), moving those who sit
 * already wherever that makes room. The paths are looked for breadth first: hundreds of guests would be as many calls deep.
 */
function canSeat(guests: readonly (readonly Provider[])[], seatsAt: (provider: Provider) => number): boolean {
  const seated = new Map<Provider, Set<number>>();
  const seatOf = new Map<number, Provider>();
  /** @param comers who would go to each provider, if there were a seat */
  const moveAlong = (free: Provider, comers: ReadonlyMap<Provider, number>): void => {
    for (let provider: Provider | undefined = free; provider !== undefined; ) {
      const guest = comers.get(provider);
      if (guest === undefined) return;
      const left = seatOf.get(guest);
      if (left !== undefined) seated.get(left)?.delete(guest);
      seatOf.set(guest, provider);
      const there = seated.get(provider);
      if (there === undefined) seated.set(provider, new Set([guest]));
      else there.add(guest);
      provider = left;
    }
  };
  const seat = (newcomer: number): boolean => {
    const comers = new Map<Provider, number>();
    const waiting = [newcomer];
    for (const guest of waiting) {
      for (const provider of guests[guest] ?? []) {
        if (comers.has(provider)) continue;
        comers.set(provider, guest);
        const there = seated.get(provider);
        if ((there?.size ?? 0) < seatsAt(provider)) {
          moveAlong(provider, comers);
          return true;
        }
        for (const other of there ?? []) waiting.push(other);
      }
    }
    return false;
  };
  return guests.every((_, guest) => seat(guest));
}
