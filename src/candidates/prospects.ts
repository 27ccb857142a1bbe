import type { Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';
import type { SharedUsage } from './shared_usage.ts';

/**
 * Whether some granular groups could all be satisfied, judged by one rule at a time: false is certain, true is not. With
 * isolation each needs a provider of its own; else, of each class that several ask for, the providers must have enough for
 * as many as ask. Either is a matching of groups to providers, which is found or refuted without trying every combination:
 * eight groups for seven devices are refused at once.
 *
 * @param groups the choices of each, of those that are possible
 */
export function haveProspects(groups: readonly (readonly Choice[])[], usage: SharedUsage, isolate: boolean): boolean {
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
 * already wherever that makes room.
 */
function canSeat(guests: readonly (readonly Provider[])[], seatsAt: (provider: Provider) => number): boolean {
  const seated = new Map<Provider, number[]>();
  const seat = (guest: number, asked: Set<Provider>): boolean => {
    for (const provider of guests[guest] ?? []) {
      if (asked.has(provider)) continue;
      asked.add(provider);
      const there = seated.get(provider) ?? [];
      const place = there.length < seatsAt(provider) ? there.length : there.findIndex((other) => seat(other, asked));
      if (place === -1) continue;
      there[place] = guest;
      seated.set(provider, there);
      return true;
    }
    return false;
  };
  return guests.every((_, guest) => seat(guest, new Set()));
}
