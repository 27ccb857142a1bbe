import type { AffinityGuard, ClaimedTerm, NamedId } from '../../db/statements/claims/claim_write.ts';
import type { WaitingRow } from '../../db/statements/claims/waiting.ts';
import type { Owner } from '../placement/consumer.ts';
import type { EntityTag, IfMatch } from '../placement/entity_tag.ts';
import type { InventoryFields } from '../placement/inventory.ts';
import { concurrentlyUpdated } from '../request/errors.ts';
import type { Condition } from '../search/conditions.ts';
import type { CandidateRequest } from '../search/request.ts';

/** The allocations that a consumer has after a claim. They replace all its present allocations. */
export type ConsumerClaim = {
  readonly uuid: string;
  /**
   * The consumer's generation as the client knows it, or null for a consumer without a record (microversion 1.28 and
   * above). Undefined if the client cannot send it: then the allocations are replaced whatever the generation is.
   */
  readonly knownGeneration: number | null | undefined;
  /** Whether the generation continues the generation of a former consumer with the same UUID (microversion 2.1 and above). */
  readonly generationGoesOn?: boolean;
  readonly projectId: string;
  readonly userId: string;
  /** Undefined keeps the type that the consumer has (before microversion 1.38). */
  readonly consumerType: string | undefined;
  /** Amounts by class name, by provider UUID; none removes the consumer, unless it is by query. */
  readonly allocations: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Instead of allocations: queries by which the consumer is placed (from 2.4). The first query that fits counts. */
  readonly queries?: readonly PlacementQuery[] | undefined;
  /** The allocations that the consumer must have now, by their entity tag (microversion 2.1 and above). */
  readonly expected?: ExpectedAllocations | undefined;
  /** How long the consumer keeps its allocations (from 2.6), or `carried over`: its term stays. Without a term they last. */
  readonly term?: ClaimedTerm | undefined;
  /** The name that the consumer gets (from 2.9); null for none, and undefined keeps its present name. */
  readonly name?: string | null | undefined;
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
  readonly incompleteOwner: Owner;
};

/** The inventories that replace all present inventories of a provider. The client sends the generation of the provider. */
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
  /** Whether the claim moves existing allocations (POST /reshaper), which no limit refuses. */
  readonly isReshape?: true;
  /** The consumers that are placed by query: their indexes in `consumers`, in the order in which they are placed. */
  readonly placing?: readonly number[] | undefined;
  /** Whose consumers the claim may write, and see in `with` and `apart_from`; absent for all. */
  readonly rights?: ClaimRights | undefined;
  /** Only of a claim that waits, or may wait. */
  readonly precedence?: Precedence | undefined;
};

/** The order of arrival: a claim that waits, or may wait, is written after the claims that reached the process earlier. */
export type Precedence = {
  /** Whether the claim must not be written now: its client has disconnected, its wait was ended, or it must wait behind claims like it. */
  isCancelled(): boolean;
  /**
   * Whether a claim that came before it is being judged or written.
   *
   * @param judged claims of its batch that need not be waited for
   * @param waitsForAll whether to wait for every such claim that no locked row holds up, and for every equal one; otherwise only for an equal
   *   one that no locked row holds up
   */
  isBehind(judged: ReadonlySet<Precedence>, waitsForAll: boolean): boolean;
  /** Notes whether a row that the claim needs was locked when it was last to be written. */
  noteHeldUp(isHeldUp: boolean): void;
  /** Its row among the claims that wait, and whether this must be stored by now. */
  readonly waitingRow: WaitingRow;
};

/** The rights of a client that may not do everything. */
export type ClaimRights = {
  allows(owner: Owner): boolean;
  /** The rule of the policy that says so, for the refusal. */
  readonly rule: string;
  /** The configured owner of old allocations without a consumer record. */
  readonly incompleteOwner: Owner;
  /** Consumer types that do not count for limits, and whose consumers may keep one; absent where all may. */
  readonly uncounted?: UncountedRights | undefined;
};

/** The consumer types that do not count for limits, and for which owners the caller may leave consumers with such a type. */
export type UncountedRights = {
  readonly types: readonly string[];
  allows(owner: Owner): boolean;
  /** The rule of the policy that says so. */
  readonly rule: string;
};

/** Whether consumers of a claim are placed by query. */
export const isByQuery = ({ placing }: Claim): boolean => placing !== undefined && placing.length > 0;

/** Why a claim was refused. The API makes a message of it, which depends on the request. */
export type RefusalReason =
  /** The policy does not allow the client to write a consumer of this owner; the message is only the name of the rule. */
  | 'not allowed'
  /** The allocations of a consumer, or the inventories of a provider, have changed since the client read them. */
  | 'unmatched consumer'
  | 'unmatched inventories'
  /** A consumer or a provider is not at the generation that the client knows. */
  | 'consumer generation'
  | 'provider generation'
  /** An allocation or inventory names a provider, or a class, that does not exist. */
  | 'unknown provider'
  | 'unknown inventory provider'
  | 'unknown class'
  /** It exceeds a limit of a project. */
  | 'limit'
  /** A provider has no such inventory, or its units or its capacity do not allow the amount. */
  | 'invalid inventory'
  /** An inventory that the claim removes has allocations. */
  | 'inventory in use'
  /** A query of a consumer fits nowhere. */
  | 'no candidates'
  /** The search for candidates took more work than one claim may take. */
  | 'query too wide'
  /** A query names a class or a trait that does not exist. */
  | 'query'
  /** The claim lost a guard to another write each time that it was judged. */
  | 'concurrent update'
  /** The client has disconnected, or the wait was ended, before the claim was written. */
  | 'given up'
  /** Another claim is ahead in the same line. */
  | 'not its turn';

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
  readonly about: RefusedAbout;

  constructor(reason: RefusalReason, message: string, about: RefusedAbout = {}) {
    super(message);
    this.reason = reason;
    this.about = about;
  }
}

/** What the message of a refusal does not say. */
type RefusedAbout = {
  /** Only for the reason `invalid inventory`. */
  readonly fault?: InventoryFault;
  /** A sentence with the numbers of the inventory that refuses the claim, for the versions that are not upstream's. */
  readonly numbers?: string;
  /** The refused consumer: for a `consumer generation`, or the consumer of another owner. */
  readonly consumer?: string;
};

/** The refusal of a claim whose wait ended, or that must wait behind claims like it, before it was written. */
export const cancelled = (): ClaimRefused =>
  new ClaimRefused('given up', 'The wait ended before the claim was written.');

/** The refusal of a claim that has lost too many races. */
export const lostTooOften = (): ClaimRefused => new ClaimRefused('concurrent update', concurrentlyUpdated);

/** The providers of each group of a query, by suffix. */
export type Mappings = ReadonlyMap<string, readonly string[]>;

/** What was found for the consumers by query of a claim. */
export type Placement = {
  /** The claim with the allocations of these consumers. */
  readonly claim: Claim;
  /** By the UUID of the consumer. */
  readonly mappings: ReadonlyMap<string, Mappings>;
  /** The ids of the providers that the choice relied on: nothing of them but their usage may have changed. */
  readonly reliedOn: readonly number[];
  /** The consumers that its queries name in `with` and `apart_from`, and where they were. */
  readonly affinity: readonly AffinityGuard[];
  /** The custom classes and traits that its queries name. */
  readonly names: { readonly classes: readonly NamedId[]; readonly traits: readonly NamedId[] };
};

/** The outcome of a claim. Empty for a claim without consumers by query: its client knows the outcome already. */
export type ClaimOutcome = {
  /** In the order of the claim. */
  readonly consumers: readonly ConsumerOutcome[];
  /** The providers of their allocations, by UUID. */
  readonly providers: ReadonlyMap<string, ProviderOutcome>;
};

/** A provider that consumers of a claim have allocations of. */
export type ProviderOutcome = {
  readonly name: string;
  /** The UUID of the root of its tree. */
  readonly root: string;
  /** Its generation after the claim. */
  readonly generation: number;
};

/** What a consumer has once its claim is written. */
export type ConsumerOutcome = Pick<ConsumerClaim, 'uuid' | 'allocations' | 'projectId' | 'userId'> & {
  /** Of a consumer by query: the providers of each group. */
  readonly mappings: Mappings | undefined;
  /** Null for a consumer without a type. */
  readonly consumerType: string | null;
  /** Null for a consumer without a name. */
  readonly name: string | null;
  /** As clients know it from 2.1 on: claims by query are of later versions. */
  readonly generation: number;
  /** Null for a consumer that has nothing. */
  readonly etag: EntityTag | null;
  /** When the term of the consumer expires, in milliseconds since 1970; null for a consumer without a term. */
  readonly expiresAtMs: number | null;
};
