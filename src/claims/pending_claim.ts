import type { LockedRows } from '../../db/statements/locked_rows.ts';
import type { Entry } from '../queue/items.ts';
import { namedOutside, relatedConsumers } from './affinity.ts';
import { type Claim, type ClaimOutcome, isByQuery, type Placement } from './claim.ts';
import { consumerLock, relationLock } from './claim_locks.ts';

/** A claim in the queue, and how it is to be judged. */
export type PendingClaim = {
  readonly claim: Claim;
  /** Whether the consumers of the claim must be read first. New consumers need not be read: the write proves that they are new. */
  readonly readsConsumers: boolean;
  /**
   * The fleet to judge the claim on. A claim that the known fleet does not allow is judged on a fresh fleet, which may refuse it.
   */
  readonly judgedOn: 'known fleet' | 'fresh fleet';
  /** How often it lost a race. */
  readonly lostRaces: number;
  /** How often the claim has let an earlier claim go first. */
  readonly yields: number;
  /** Whether the claim has waited until its project, user and types were created. */
  readonly hadOwnersMade: boolean;
  /** The consumers that its queries name and that it does not write. They are read together with the consumers that the claim writes. */
  readonly affinity: readonly string[];
  /** Its consumers whose queries name others, and the named consumers. Two claims that share such a consumer go in different batches. */
  readonly related: readonly string[];
  /** The keys of the locks by which the queue keeps two claims out of one batch. */
  readonly conflictKeys: readonly string[];
  /** Of a claim by query: the UUIDs of the providers that were chosen last, and of all chosen providers that were found locked. */
  readonly choice: { chosen: readonly string[]; readonly avoided: Set<string> };
};

/** A claim in a batch. */
export type BatchedClaim = Entry<PendingClaim, ClaimOutcome>;

/** A claim that has just arrived. */
export function pending(claim: Claim): PendingClaim {
  const byQuery = isByQuery(claim);
  const affinity = byQuery ? namedOutside(claim) : [];
  const related = byQuery ? relatedConsumers(claim) : [];
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
    yields: 0,
    hadOwnersMade: false,
    affinity,
    related,
    conflictKeys: [...readBy({ claim, affinity }).map(consumerLock), ...related.map(relationLock)],
    choice: { chosen: [], avoided: new Set() },
  };
}

/** Notes which providers were chosen for the consumers by query of a claim. */
export function noteChosen({ choice }: PendingClaim, { claim, mappings }: Placement): void {
  const placed = claim.consumers.filter(({ uuid }) => mappings.has(uuid));
  choice.chosen = placed.flatMap(({ allocations }) => [...allocations.keys()]);
}

/**
 * Notes that some providers are locked. A claim by query that had chosen one of them avoids all of them, and need not wait for the lock.
 */
export function avoidLocked(claims: readonly PendingClaim[], isLocked: (uuid: string) => boolean): void {
  for (const { choice } of claims) {
    if (!choice.chosen.some(isLocked)) continue;
    for (const uuid of choice.chosen) if (isLocked(uuid)) choice.avoided.add(uuid);
    choice.chosen = [];
  }
}

/** A claim that is judged again, on a fresh fleet. */
export const onFreshFleet = (claim: PendingClaim): PendingClaim => ({
  ...claim,
  judgedOn: 'fresh fleet',
  readsConsumers: true,
});

/** The consumers that a claim writes, by their UUIDs. */
const consumersOf = ({ claim }: Pick<PendingClaim, 'claim'>): string[] => claim.consumers.map(({ uuid }) => uuid);

/** The consumers that a claim is judged by and locks, by their UUIDs. */
export const readBy = (claim: Pick<PendingClaim, 'claim' | 'affinity'>): string[] => [
  ...consumersOf(claim),
  ...claim.affinity,
];

/**
 * The UUIDs of the providers that a claim locks: the providers that it names, and those that were chosen for it. A claim may also
 * lock the providers of its consumers' present allocations; these are not in the list.
 */
export const providersOf = ({ claim, choice }: PendingClaim): string[] => [
  ...claim.consumers.flatMap(({ allocations }) => [...allocations.keys()]),
  ...claim.inventories.map(({ providerUuid }) => providerUuid),
  ...choice.chosen,
];

/** The rows that some claims lock. */
export const rowsOf = (claims: readonly PendingClaim[]): LockedRows => ({
  providers: [...new Set(claims.flatMap(providersOf))],
  consumers: [...new Set(claims.flatMap(readBy))],
});

/**
 * Whether the owner and type of a consumer must be read: the claim keeps its type, which the entity tag contains, or
 * has `If-Match`, or its client may not do everything.
 */
export const needsOwner = ({ claim }: PendingClaim): boolean =>
  claim.rights !== undefined ||
  claim.consumers.some(({ consumerType, expected }) => consumerType === undefined || expected !== undefined);
