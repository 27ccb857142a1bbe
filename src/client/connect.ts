import { type AggregateCalls, aggregateCalls } from './aggregates.ts';
import { type AllocationCalls, allocationCalls, type Reshape, reshapeCall } from './allocations.ts';
import { type Auth, token } from './auth.ts';
import { openCall } from './call.ts';
import { type CandidateQuestions, candidateQuestions } from './candidate_questions.ts';
import { type CandidatesCall, candidatesCall } from './candidates.ts';
import { type ChangesCall, changesCall } from './changes.ts';
import { type ConsumerCalls, consumerCalls } from './consumers.ts';
import { type HoldingCalls, holdingCalls } from './holdings.ts';
import { type InventoryCalls, inventoryCalls } from './inventories.ts';
import { type LimitCalls, limitCalls } from './limits.ts';
import type { From, Microversion } from './microversions.ts';
import { asking, type Call, type CallOptions, type ClaimOptions } from './operation.ts';
import { type ProviderSummaryCalls, providerSummaryCalls } from './provider_summaries.ts';
import { type ProviderCalls, providerCalls } from './providers.ts';
import { type ResourceClassCalls, resourceClassCalls } from './resource_classes.ts';
import { checkedAddress, type Fetch } from './send.ts';
import { type TokenCalls, tokenCalls } from './tokens.ts';
import { type ProviderTraitCalls, providerTraitCalls, type TraitCalls, traitCalls } from './traits.ts';
import { type UsageRecordCalls, usageRecordCalls } from './usage_records.ts';
import { type UsageCalls, usageCalls } from './usages.ts';
import { type ServerVersion, serverVersionCall, wantedVersion } from './version_request.ts';
import { type WaitingCalls, waitingCalls } from './waiting.ts';

/** The URL of the service, the authentication, and how long a call may take. */
export type ConnectOptions<Version extends string = string, Oldest extends Microversion = Microversion> = {
  /**
   * The URL of the service, `http://127.0.0.1:8778`. Default: the URL that `auth` finds, as `keystone` does in the
   * catalog.
   */
  readonly endpoint?: string | undefined;
  /** A token, or an `Auth` that gets tokens. */
  readonly auth: Auth | string;
  /** `1.N`, `2.N` or `latest`: the only version to use. If absent, client and server negotiate the newest that both know. */
  readonly version?: Version | undefined;
  /** For negotiation: the oldest version that the program can work with. Default: 1.0. */
  readonly oldest?: Oldest | undefined;
  /**
   * For negotiation: the newest version that the program was written for. Default: the newest that this client knows.
   */
  readonly newest?: Microversion | undefined;
  /** Milliseconds that a call may take, including all attempts; Infinity for no deadline. Default: 30,000. */
  readonly deadlineMs?: number | undefined;
  /** The largest number of attempts of a call that may be repeated. Default: no limit until the deadline. */
  readonly attempts?: number | undefined;
  /** Default: the global one. */
  readonly fetch?: Fetch | undefined;
};

/** A client. `Version` is the named version, or all versions that negotiation can result in. */
export type Placement<Version extends Microversion = Microversion> = {
  readonly providers: ProviderCalls<Version>;
  readonly inventories: InventoryCalls<Version>;
  readonly providerTraits: ProviderTraitCalls<Version>;
  readonly aggregates: AggregateCalls<Version>;
  readonly usages: UsageCalls<Version>;
  readonly allocations: AllocationCalls<Version>;
  readonly consumers: ConsumerCalls;
  readonly holdings: HoldingCalls;
  readonly usageRecords: UsageRecordCalls;
  readonly providerSummaries: ProviderSummaryCalls;
  readonly candidates: CandidatesCall<Version>;
  readonly candidateQuestions: CandidateQuestions;
  readonly changes: ChangesCall;
  readonly tokens: TokenCalls;
  readonly limits: LimitCalls;
  readonly waiting: WaitingCalls;
  readonly reshape: (reshape: Reshape<Version>, options?: ClaimOptions) => Promise<void>;
  readonly traits: TraitCalls;
  readonly resourceClasses: ResourceClassCalls<Version>;
  /** The versions that the server speaks, and the version that this client uses with it. */
  readonly serverVersion: (options?: CallOptions) => Promise<ServerVersion>;
  /** Sends any request, for requests that the other methods do not cover. */
  readonly call: Call;
};

/** How long a call may take by default, in milliseconds. */
const defaultDeadlineMs = 30_000;

/**
 * Makes a client. It sends no request before the first call.
 *
 * With `version` the answers have the types of that version. With `oldest` they have the types of all versions from it
 * on. With neither, the fields that some versions lack are optional.
 *
 * @throws VersionError for an invalid version, or a version that this client does not know; TypeError for an endpoint or a token by which
 *   no request can be sent
 */
export function connect<const Version extends Microversion>(
  options: ConnectOptions<Version> & { readonly version: Version },
): Placement<Version>;
export function connect<const Oldest extends Microversion>(
  options: ConnectOptions<never, Oldest> & { readonly oldest: Oldest; readonly version?: undefined },
): Placement<From<Oldest>>;
export function connect(options: ConnectOptions): Placement;
export function connect(options: ConnectOptions): Placement {
  const { endpoint, auth, deadlineMs = defaultDeadlineMs, attempts = Number.POSITIVE_INFINITY } = options;
  const call = openCall({
    endpoint: endpoint === undefined ? undefined : checkedAddress('endpoint', endpoint),
    auth: typeof auth === 'string' ? token(auth) : auth,
    wanted: wantedVersion(options),
    deadlineMs,
    attempts,
    fetch: options.fetch ?? globalThis.fetch,
  });
  const ask = asking(call);
  return {
    providers: providerCalls(call, ask),
    inventories: inventoryCalls(ask),
    providerTraits: providerTraitCalls(ask),
    aggregates: aggregateCalls(ask),
    usages: usageCalls(ask),
    allocations: allocationCalls(ask),
    consumers: consumerCalls(ask),
    holdings: holdingCalls(ask),
    usageRecords: usageRecordCalls(ask),
    providerSummaries: providerSummaryCalls(ask),
    candidates: candidatesCall(ask),
    candidateQuestions: candidateQuestions(ask),
    changes: changesCall(ask),
    tokens: tokenCalls(ask),
    limits: limitCalls(ask),
    waiting: waitingCalls(ask),
    reshape: reshapeCall(ask),
    traits: traitCalls(call, ask),
    resourceClasses: resourceClassCalls(call, ask),
    serverVersion: serverVersionCall(call),
    call,
  };
}
