import { inventoryOf, type Provider } from '../../fleet/provider.ts';
import { capacity } from '../../placement/inventory.ts';
import type { Pieces } from '../../rest/pieces.ts';
import { type Candidate, takenByProvider } from '../candidate.ts';
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

/** What one consumer takes of one inventory with a candidate. */
export type Take = { readonly provider: Provider; readonly classId: number; readonly amount: number };

/** What a candidate takes. If several groups take the same class of one provider, their sum. */
export function takesOf(candidate: Candidate): readonly Take[] {
  const takes: Take[] = [];
  for (const [provider, amounts] of takenByProvider(candidate)) {
    for (const [classId, amount] of amounts) takes.push({ provider, classId, amount });
  }
  return takes;
}

/** How many consumers can each take this at the same time. */
export const timesOf = (takes: readonly Take[]): number =>
  takes.reduce(
    (times, { provider, classId, amount }) => Math.min(times, timesAt(provider, classId, amount)),
    Number.POSITIVE_INFINITY,
  );

/** Raises the usages of what consumers take, this number of times. */
export type Raise = (takes: readonly Take[], times: number) => void;

/**
 * Does work that raises usages in the fleet, and lowers them again afterwards, also if it throws. In its pauses they are as they were,
 * so that no other request sees them raised.
 */
export function* withRaisedUsage<Result>(act: (raise: Raise) => Pieces<Result>): Pieces<Result> {
  const raised: { readonly takes: readonly Take[]; readonly times: number }[] = [];
  const add = (takes: readonly Take[], times: number): void => {
    for (const { provider, classId, amount } of takes) {
      const inventory = inventoryOf(provider, classId);
      if (inventory !== undefined) inventory.used += amount * times;
    }
  };
  const lower = (): void => {
    for (const { takes, times } of raised) add(takes, -times);
  };
  const work = act((takes, times) => {
    raised.push({ takes, times });
    add(takes, times);
  });
  for (;;) {
    let step: ReturnType<typeof work.next>;
    try {
      step = work.next();
    } finally {
      lower();
    }
    if (step.done) return step.value;
    yield undefined;
    for (const { takes, times } of raised) add(takes, times);
  }
}
