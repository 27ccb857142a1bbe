import { type AggregateCalls, aggregateCalls } from './aggregates.ts';
import { type AllocationCalls, allocationCalls, type Reshape, reshapeCall } from './allocations.ts';
import { type Auth, token } from './auth.ts';
import { openCall } from './call.ts';
import { type CandidatesCall, candidatesCall } from './candidates.ts';
import { type InventoryCalls, inventoryCalls } from './inventories.ts';
import type { From, Microversion } from './microversions.ts';
import type { Call, CallOptions, WriteOptions } from './operation.ts';
import { type ProviderCalls, providerCalls } from './providers.ts';
import { type ResourceClassCalls, resourceClassCalls } from './resource_classes.ts';
import type { Fetch } from './send.ts';
import { type ServerVersion, serverVersionCall } from './server_version.ts';
import { type ProviderTraitCalls, providerTraitCalls, type TraitCalls, traitCalls } from './traits.ts';
import { type UsageCalls, usageCalls } from './usages.ts';
import { wantedVersion } from './version_request.ts';

/** Where the service is, who asks, and how patiently. */
export type ConnectOptions<Version extends string = string, Oldest extends Microversion = Microversion> = {
  /** Where the service is, `http://127.0.0.1:8778`. Default: where `auth` finds it, as `keystone` does in the catalog. */
  readonly endpoint?: string | undefined;
  /** A token, or what gets one. */
  readonly auth: Auth | string;
  /** `1.N` or `latest`, and nothing else will do. Absent, the newest is negotiated that client and server know. */
  readonly version?: Version | undefined;
  /** For negotiation: the oldest version that the program can work with. Default: 1.0. */
  readonly oldest?: Oldest | undefined;
  /** For negotiation: the newest version that the program was written for. Default: the newest that this client knows. */
  readonly newest?: Microversion | undefined;
  /** Milliseconds that a call may take, with everything that is repeated. Default: 30,000. */
  readonly deadlineMs?: number | undefined;
  /** How often a call is tried at most where it may be repeated. Default: until the deadline. */
  readonly attempts?: number | undefined;
  /** Default: the global one. */
  readonly fetch?: Fetch | undefined;
};

/** A client. `Version` is what it may speak: the named version, or all that negotiation may come to. */
export type Placement<Version extends Microversion = Microversion> = {
  readonly providers: ProviderCalls<Version>;
  readonly inventories: InventoryCalls<Version>;
  readonly providerTraits: ProviderTraitCalls<Version>;
  readonly aggregates: AggregateCalls<Version>;
  readonly usages: UsageCalls<Version>;
  readonly allocations: AllocationCalls<Version>;
  readonly candidates: CandidatesCall<Version>;
  readonly reshape: (reshape: Reshape<Version>, options?: WriteOptions) => Promise<void>;
  readonly traits: TraitCalls;
  readonly resourceClasses: ResourceClassCalls<Version>;
  /** What the server speaks, and what is spoken with it. */
  readonly serverVersion: (options?: CallOptions) => Promise<ServerVersion>;
  /** Any request, for what the others do not cover. */
  readonly call: Call;
};

/** How long a call may take, in milliseconds, where nothing else is said. */
const defaultDeadlineMs = 30_000;

/**
 * Makes a client; nothing is sent before the first call.
 *
 * With `version` the answers' types are those of the version; with `oldest` those of all versions from it on; with neither, what
 * some versions lack is optional.
 *
 * @throws VersionError for a version that is none, or that this client does not know
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
    endpoint: endpoint === undefined ? undefined : checkedEndpoint(endpoint),
    auth: typeof auth === 'string' ? token(auth) : auth,
    wanted: wantedVersion(options),
    deadlineMs,
    attempts,
    fetch: options.fetch ?? globalThis.fetch,
  });
  return {
    providers: providerCalls(call),
    inventories: inventoryCalls(call),
    providerTraits: providerTraitCalls(call),
    aggregates: aggregateCalls(call),
    usages: usageCalls(call),
    allocations: allocationCalls(call),
    candidates: candidatesCall(call),
    reshape: reshapeCall(call),
    traits: traitCalls(call),
    resourceClasses: resourceClassCalls(call),
    serverVersion: serverVersionCall(call),
    call,
  };
}

function checkedEndpoint(endpoint: string): string {
  if (/^https?:\/\/[^/]/i.test(endpoint) && URL.canParse(endpoint)) return endpoint;
  throw new TypeError(`The endpoint "${endpoint}" is no URL. Write it as http://host:port.`);
}
