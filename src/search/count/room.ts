import { inventoryOf, type Provider } from '../../fleet/model/provider.ts';
import { capacity } from '../../placement/inventory.ts';
import type { ResolvedGroup } from '../resolve.ts';

/** What a provider has free of a class; 0 if more is used than its capacity. */
export function roomAt(provider: Provider, classId: number): number {
  const inventory = inventoryOf(provider, classId);
  return inventory === undefined ? 0 : Math.max(0, capacity(inventory.fields) - inventory.used);
}

/** How many consumers can each take this amount of a provider at the same time. */
export const timesAt = (provider: Provider, classId: number, amount: number): number =>
  Math.floor(roomAt(provider, classId) / amount);

/** How many consumers can each take all that a group asks for, of a provider that satisfies the group. */
export function timesOfGroup(provider: Provider, { resources }: ResolvedGroup): number {
  let times = Number.POSITIVE_INFINITY;
  for (const { classId, amount } of resources) times = Math.min(times, timesAt(provider, classId, amount));
  return times;
}
