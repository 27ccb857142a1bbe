import type { ClaimedTerm } from '../../db/statements/claims/claim_write.ts';
import type { LockedRows } from '../../db/statements/locked_rows.ts';
import type { IfMatch } from '../placement/entity_tag.ts';
import type { InventoryFields } from '../placement/inventory.ts';
import type { Entry } from '../queue/items.ts';
import { concurrentlyUpdated } from '../request/errors.ts';
import type { Condition } from '../search/conditions.ts';
import type { CandidateRequest } from '../search/request.ts';
import { namedOutside, relatedConsumers } from './neighbours.ts';
import type { ClaimOutcome } from './outcome.ts';
import type { Placement } from './placing.ts';

/** The allocations that a consumer is to have after a claim, in place of all that it has now. */
export type ConsumerClaim = {
  readonly uuid: string;
  /**
   * The consumer's generation as the client knows it, or null for a consumer without a record (microversion 1.28 and
   * above). Undefined if the client cannot send it: then the allocations are replaced whatever the generation is.
   */
  readonly knownGeneration: number | null | undefined;
  /** Whether that goes on after the generations of former consumers with the same UUID (microversion 1.40 and above). */
  readonly generationGoesOn?: boolean;
  readonly projectId: string;
  readonly userId: string;
  /** Undefined keeps the type that the consumer has (before microversion 1.38). */
  readonly consumerType: string | undefined;
  /** Amounts by class name, by provider UUID; none removes the consumer, unless it is by query. */
  readonly allocations: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Instead of allocations: queries that find the consumer a place (from 1.43). The first query that fits counts. */
  readonly queries?: readonly PlacementQuery[] | undefined;
  /** The allocations that the consumer must have now, by their entity tag (microversion 1.40 and above). */
  readonly expected?: ExpectedAllocations | undefined;
  /** How long the consumer has them (from 1.45), or `carried over`: its term stays. Without a term it is lasting. */
  readonly term?: ClaimedTerm | undefined;
};

/** A query for allocation candidates, by which a consumer is placed. */
export type PlacementQuery = {
  readonly request: CandidateRequest;
  /** The parts of the request. An error names the first part that leaves no tree. */
  readonly conditions: readonly Condition[];
};

/** The allocations of a consumer that the client has seen. */
export type ExpectedAllocations = {
  readonly ifMatch: IfMatch;
  /** The project and user that answers show for old allocations without a consumer record. */
  readonly incompleteOwner: { readonly projectId: string; readonly userId: string };
};

/** The inventories that a provider is to have in place of all that it has now. The client sends its generation. */
export type InventoryClaim = {
  readonly providerUuid: string;
  readonly knownGeneration: number;
  readonly inventories: ReadonlyMap<string, InventoryFields>;
  /** The inventories that the provider must have now, by their entity tag. */
  readonly ifMatch?: IfMatch | undefined;
};

/** What one request writes, as a whole or not at all: the allocations of some consumers; for the reshaper also inventories. */
export type Claim = {
  readonly consumers: readonly ConsumerClaim[];
  readonly inventories: readonly InventoryClaim[];
  /** The consumers that are placed by query: their indexes in `consumers`, in the order in which they are placed. */
  readonly placing?: readonly number[] | undefined;
};

/** Whether consumers of a claim are placed by query. */
export const isByQuery = ({ placing }: Claim): boolean => placing !== undefined && placing.length > 0;

/** Why a claim was refused. The API makes a message of it, which depends on the request. */
export type RefusalReason =
  /** A consumer's allocations, or a provider's inventories, are not those that the client has seen. */
  | 'unmatched consumer'
  | 'unmatched inventories'
  /** A consumer or a provider is not at the generation that the client knows. */
  | 'consumer generation'
  | 'provider generation'
  /** An allocation or inventory names a provider, or a class, that does not exist. */
  | 'unknown provider'
  | 'unknown inventory provider'
  | 'unknown class'
  /** A provider has no such inventory, or its units or its capacity do not allow the amount. */
  | 'invalid inventory'
  /** An inventory that the claim removes has allocations. */
  | 'inventory in use'
  /** A query of a consumer fits nowhere. */
  | 'no candidates'
  /** The search for a place took more work than one claim may take. */
  | 'query too wide'
  /** A query names a class or a trait that does not exist. */
  | 'query'
  /** The claim lost a guard to another write each time that it was judged. */
  | 'concurrent update';

/**
 * Why an inventory is invalid: the provider has none of the class, or its units or its capacity do not allow the
 * amount.
 */
export type InventoryFault = 'absent' | 'constraints' | 'capacity';

/**
 * A claim was refused, and is not written. The message is a text for the client, in upstream's words where upstream has
 * this refusal; for `unmatched ...` it is only the UUID of the consumer or provider that does not match. A refusal on
 * the known fleet reaches no client, so its message may be short.
 */
export class ClaimRefused extends Error {
  readonly reason: RefusalReason;
  /** Only for the reason `invalid inventory`. */
  readonly fault: InventoryFault | undefined;

  constructor(reason: RefusalReason, message: string, fault?: InventoryFault) {
    super(message);
    this.reason = reason;
    this.fault = fault;
  }
}

/** The refusal of a claim that has lost too many races. */
export const lostTooOften = (): ClaimRefused => new ClaimRefused('concurrent update', concurrentlyUpdated);

/** A claim in the queue, and how it is to be judged. */
export type PendingClaim = {
  readonly claim: Claim;
  /** Whether its consumers must be read first. For new consumers they need not: the write proves that they are new. */
  readonly readsConsumers: boolean;
  /**
   * The fleet to judge it on. If the known fleet does not allow it, it is judged on a fresh one, which may refuse it.
   */
  readonly judgedOn: 'known fleet' | 'fresh fleet';
  /** How often it lost a race. */
  readonly lostRaces: number;
  /** Whether it has waited until its project, user and types were made. */
  readonly hadOwnersMade: boolean;
  /** The consumers that its queries name and that it does not write. They are read together with those that it writes. */
  readonly neighbours: readonly string[];
  /** Its consumers that name others, and those that are named. Two claims with one in common go in different batches. */
  readonly related: readonly string[];
  /** Of a claim by query, by UUID: the providers that were chosen last, and all chosen ones that were found locked. */
  readonly tried: { chosen: readonly string[]; readonly avoided: Set<string> };
};

/** A claim in a batch. */
export type BatchedClaim = Entry<PendingClaim, ClaimOutcome>;

/** A claim that has just arrived. */
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
    hadOwnersMade: false,
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

/** The same claim, to be judged on a fresh fleet. */
export const onFreshFleet = (claim: PendingClaim): PendingClaim => ({
  ...claim,
  judgedOn: 'fresh fleet',
  readsConsumers: true,
});

/** The consumers that a claim writes, by their UUIDs. */
export const consumersOf = ({ claim }: PendingClaim): string[] => claim.consumers.map(({ uuid }) => uuid);

/** The consumers that a claim is judged by, by their UUIDs. */
export const readBy = (claim: PendingClaim): string[] => [...consumersOf(claim), ...claim.neighbours];

/**
 * The providers that a claim names, or that were chosen for it, and so locks, by their UUIDs. It may also lock those that
 * its consumers have now.
 */
export const providersOf = ({ claim, tried }: PendingClaim): string[] => [
  ...claim.consumers.flatMap(({ allocations }) => [...allocations.keys()]),
  ...claim.inventories.map(({ providerUuid }) => providerUuid),
  ...tried.chosen,
];

/** The rows that some claims lock. */
export const rowsOf = (claims: readonly PendingClaim[]): LockedRows => ({
  providers: [...new Set(claims.flatMap(providersOf))],
  consumers: [...new Set(claims.flatMap(consumersOf))],
});

/**
 * Whether the owner and type of a consumer must be read: the claim keeps its type, which the entity tag contains, or
 * has `If-Match`.
 */
export const needsOwner = ({ claim }: PendingClaim): boolean =>
  claim.consumers.some(({ consumerType, expected }) => consumerType === undefined || expected !== undefined);
