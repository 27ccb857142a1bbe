import type { Condition } from '../candidates/conditions.ts';
import type { CandidateRequest } from '../candidates/request.ts';
import type { IfMatch } from '../placement/entity_tag.ts';
import type { InventoryFields } from '../placement/inventory.ts';

/** What one consumer is to have after a claim, instead of all it has now. */
export type ConsumerClaim = {
  readonly uuid: string;
  /**
   * What the client knows of the consumer: its generation, or null for one without a record (microversion 1.28 and above);
   * undefined where the client cannot say, and whatever is there is replaced.
   */
  readonly knownGeneration: number | null | undefined;
  readonly projectId: string;
  readonly userId: string;
  /** Undefined keeps the type that the consumer has (before microversion 1.38). */
  readonly consumerType: string | undefined;
  /** Amounts by class name, by provider UUID; none removes the consumer, unless it is by query. */
  readonly allocations: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** By which its place is found, in the place of allocations (microversion 1.43 and above): the first that fits counts. */
  readonly queries?: readonly PlacementQuery[] | undefined;
  /** The allocations that it must have now, by their entity tag (microversion 1.40 and above). */
  readonly expected?: ExpectedAllocations | undefined;
};

/** A query for allocation candidates, by which a consumer is placed. */
export type PlacementQuery = {
  readonly request: CandidateRequest;
  /** The same, in its parts, to tell which of them fits nowhere. */
  readonly conditions: readonly Condition[];
};

/** What the client has seen of a consumer. */
export type ExpectedAllocations = {
  readonly ifMatch: IfMatch;
  /** Whom old allocations without a consumer record are shown to belong to. */
  readonly incompleteOwner: { readonly projectId: string; readonly userId: string };
};

/** The inventories that a provider is to have instead of all it has now; the client knows its generation. */
export type InventoryClaim = {
  readonly providerUuid: string;
  readonly knownGeneration: number;
  readonly inventories: ReadonlyMap<string, InventoryFields>;
  /** The inventories that it must have now, by their entity tag. */
  readonly ifMatch?: IfMatch | undefined;
};

/** Allocations of some consumers, and for the reshaper inventories too, that are written all together or not at all. */
export type Claim = {
  readonly consumers: readonly ConsumerClaim[];
  readonly inventories: readonly InventoryClaim[];
  /** The consumers that are placed by query, as places in `consumers`, in the order in which they are placed. */
  readonly placing?: readonly number[] | undefined;
};

/** Whether consumers of a claim are placed by query. */
export const isByQuery = ({ placing }: Claim): boolean => placing !== undefined && placing.length > 0;

/** Why a claim was refused; the API words it, by what asked for it. */
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
  /** An inventory that is to go has allocations. */
  | 'inventory in use'
  /** A query of a consumer fits nowhere; or finding out takes too much work; or it names what does not exist. */
  | 'no candidates'
  | 'query too wide'
  | 'query'
  /** Other writers were faster, every time. */
  | 'concurrent update';

/** What an invalid inventory does not allow: there is none of the class, or its units, or its capacity, refuse the amount. */
export type InventoryFault = 'absent' | 'constraints' | 'capacity';

/** A claim that is not written. Its message is upstream's, or, for `unmatched ...`, the UUID of what does not match. */
export class ClaimRefused extends Error {
  readonly reason: RefusalReason;
  /** Of an invalid inventory. */
  readonly fault: InventoryFault | undefined;

  constructor(reason: RefusalReason, message: string, fault?: InventoryFault) {
    super(message);
    this.reason = reason;
    this.fault = fault;
  }
}
