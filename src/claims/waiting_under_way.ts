import { relatedConsumers } from './affinity.ts';
import type { Waiter } from './waiter.ts';

/** Claims that wait, or may wait, and that are about to be judged and written. */
export type ClaimsUnderWay = Iterable<Waiter> & {
  /** Adds a claim in the order in which the queue of claims gets it. */
  add(waiter: Waiter): void;
  /** Removes a claim, which must have the consumers that it had when it was added. */
  delete(waiter: Waiter): void;
  has(waiter: Waiter): boolean;
  /** Whether the queue of claims keeps it behind another one that has a consumer in common. */
  isQueuedBehind(waiter: Waiter): boolean;
};

/** Starts without claims. */
export function openClaimsUnderWay(): ClaimsUnderWay {
  const all = new Set<Waiter>();
  /** By what they lock. */
  const queued = new Map<string, Set<Waiter>>();
  return {
    [Symbol.iterator]: () => all.values(),
    add: (waiter) => {
      all.add(waiter);
      for (const key of lockedBy(waiter)) queued.set(key, (queued.get(key) ?? new Set()).add(waiter));
    },
    delete: (waiter) => {
      all.delete(waiter);
      for (const key of lockedBy(waiter)) {
        const others = queued.get(key);
        others?.delete(waiter);
        if (others?.size === 0) queued.delete(key);
      }
    },
    has: (waiter) => all.has(waiter),
    isQueuedBehind: (waiter) => {
      for (const key of lockedBy(waiter)) {
        const [first] = queued.get(key) ?? [];
        if (first !== waiter) return true;
      }
      return false;
    },
  };
}

/** What a claim locks in the queue of claims: its consumers, and what its queries relate. */
const lockedBy = ({ claim }: Waiter): readonly string[] => [
  ...claim.consumers.map(({ uuid }) => uuid),
  ...relatedConsumers(claim).map((uuid) => `related ${uuid}`),
];
