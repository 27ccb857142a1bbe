import type { LockedRows } from '../../db/statements/claims/locked_rows.ts';
import type { Entry } from '../batching/batches.ts';
import type { Claim } from './claim.ts';
import { namedOutside, relatedConsumers } from './neighbours.ts';
import type { ClaimOutcome } from './outcome.ts';
import type { Placement } from './placing.ts';

/** A claim that is to be written, and what is known of it so far. */
export type PendingClaim = {
  readonly claim: Claim;
  /** Whether the consumers' present state must be read: a claim for new consumers goes without, and the write proves it. */
  readonly readsConsumers: boolean;
  /** What it is judged on: what a fleet that may be old refuses is judged again on a fresh one, whose refusal is given. */
  readonly judgedOn: 'known fleet' | 'fresh fleet';
  readonly lostRaces: number;
  /** The consumers that its queries name, which it does not write; they are read with those that it writes. */
  readonly neighbours: readonly string[];
  /** The consumers that name others or are named: of two claims with one in common the later goes in a later batch. */
  readonly related: readonly string[];
  /** Of a claim by query: the providers that were chosen for it last, by their UUIDs, and those of them that were locked. */
  readonly tried: { chosen: readonly string[]; readonly avoided: Set<string> };
};

/** A claim in a batch. */
export type BatchedClaim = Entry<PendingClaim, ClaimOutcome>;

/** A claim that has just come. */
export function pending(claim: Claim): PendingClaim {
  const related = relatedConsumers(claim);
  return {
    claim,
    readsConsumers:
      related.length > 0 ||
      claim.consumers.some(
        ({ knownGeneration, allocations, queries, expected }) =>
          knownGeneration !== null || (allocations.size === 0 && queries === undefined) || expected !== undefined,
      ),
    judgedOn: 'known fleet',
    lostRaces: 0,
    neighbours: namedOutside(claim),
    related,
    tried: { chosen: [], avoided: new Set() },
  };
}

/** Notes what was chosen for the consumers of a claim that are by query. */
export function noteTried({ tried }: PendingClaim, { claim, mappings }: Placement): void {
  const placed = claim.consumers.filter(({ uuid }) => mappings.has(uuid));
  tried.chosen = placed.flatMap(({ allocations }) => [...allocations.keys()]);
}

/** Notes that some providers are locked: those claims that had chosen one of them need not wait for it. */
export function avoidLocked(claims: readonly PendingClaim[], isLocked: (uuid: string) => boolean): void {
  for (const { tried } of claims) {
    if (!tried.chosen.some(isLocked)) continue;
    for (const uuid of tried.chosen) if (isLocked(uuid)) tried.avoided.add(uuid);
    tried.chosen = [];
  }
}

/** A claim as it is judged again on a fresh fleet. */
export const onFreshFleet = (claim: PendingClaim): PendingClaim => ({
  ...claim,
  judgedOn: 'fresh fleet',
  readsConsumers: true,
});

/** The consumers that a claim writes, by their UUIDs. */
export const consumersOf = ({ claim }: PendingClaim): string[] => claim.consumers.map(({ uuid }) => uuid);

/** The consumers that a claim is judged by, by their UUIDs. */
export const readBy = (claim: PendingClaim): string[] => [...consumersOf(claim), ...claim.neighbours];

/** The providers that a claim is known to lock, by their UUIDs. */
export const providersOf = ({ claim, tried }: PendingClaim): string[] => [
  ...claim.consumers.flatMap(({ allocations }) => [...allocations.keys()]),
  ...claim.inventories.map(({ providerUuid }) => providerUuid),
  ...tried.chosen,
];

/** The rows of some claims. */
export const rowsOf = (claims: readonly PendingClaim[]): LockedRows => ({
  providers: [...new Set(claims.flatMap(providersOf))],
  consumers: [...new Set(claims.flatMap(consumersOf))],
});

/** Whether a claim was sent for one entity tag of what a consumer has. */
export const isByTag = ({ claim }: PendingClaim): boolean =>
  claim.consumers.some(({ expected }) => expected !== undefined);

/** Whether a claim keeps the consumer's type, which its entity tag is of, or was sent for one tag of owner and type and all. */
export const needsOwner = ({ claim }: PendingClaim): boolean =>
  claim.consumers.some(({ consumerType, expected }) => consumerType === undefined || expected !== undefined);
