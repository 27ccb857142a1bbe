import { type AnyClaim, type Claim, claimBodies, claimBody, claimsGuardedSince, sinceOfClaims } from './claim.ts';
import type { Resources } from './filters.ts';
import type { NewInventories } from './inventories.ts';
import { type Microversion, type Since, versionNumber } from './microversions.ts';
import {
  type Ask,
  type CallOptions,
  type ClaimOptions,
  isGuarded,
  type PlacingOptions,
  pathOf,
  type Tagged,
  type WriteOptions,
} from './operation.ts';
import {
  isPlacing,
  type NamesOfProviders,
  type Placed,
  type PlacedByQuery,
  type Placing,
  placingBody,
} from './placing.ts';
import { waitingSince } from './waiting.ts';

/**
 * The allocations of a consumer. For a consumer that has none, or is unknown, `allocations` is empty and the rest is
 * missing.
 */
export type ConsumerAllocations<Version extends Microversion = Microversion> = {
  readonly allocations: {
    readonly [provider: string]: {
      readonly resources: Resources;
      /** The current generation of the provider. */
      readonly generation: number;
    };
  };
} & Since<Version, '1.12', { readonly project_id?: string; readonly user_id?: string }> &
  Since<Version, '1.28', { readonly consumer_generation?: number | null }> &
  Since<Version, '1.38', { readonly consumer_type?: string }> &
  Since<
    Version,
    '2.6',
    {
      /** When the term of the consumer expires; null without a term. */
      readonly expires_at?: string | null;
    }
  > &
  Since<
    Version,
    '2.7',
    {
      /** The names of the providers of `allocations`. */
      readonly resource_providers?: NamesOfProviders;
    }
  > &
  Since<
    Version,
    '2.9',
    {
      /** Null for a consumer without a name. */
      readonly name?: string | null;
    }
  > &
  Partial<Tagged<Version>>;

/** Calls about the allocations of consumers. */
export type AllocationCalls<Version extends Microversion> = {
  show(consumer: string, options?: CallOptions): Promise<ConsumerAllocations<Version>>;
  /**
   * Replaces the allocations of a consumer. @throws ApiError 409 if they do not fit, or if something changed in between
   */
  set(consumer: string, claim: Claim<Version>, options?: ClaimOptions): Promise<void>;
  /** Replaces the allocations of several consumers, all or none of them. From 1.13. */
  setMany(claims: { readonly [consumer: string]: Claim<Version> }, options?: ClaimOptions): Promise<void>;
  /**
   * Finds a place for a consumer and claims it, in one request: the server searches, chooses by `order` and writes as one step, so
   * there is no loop of reading candidates, claiming one, losing it to a faster client and reading again. What the consumer has
   * already counts as free, so a resize in place succeeds on a full host. From 2.4.
   *
   * With `waitMs` it waits until it fits, and until its project has less than its limits. From 2.8.
   *
   * @returns what the consumer has now
   * @throws ApiError 409 with the code `placement.no_candidates` where it fits nowhere; the message names the first condition that
   *   leaves no tree. 409 with `placement.concurrent_update` where the consumer has another generation. 429 where too
   *   many claims wait
   */
  place(consumer: string, placing: Placing, options?: PlacingOptions): Promise<PlacedByQuery>;
  /**
   * Finds places for several consumers and claims them, all or none: a gang. What they all have is free first; then the plain claims
   * among them are placed, then those by query in the order of the object, but each after the consumers that its `with` names.
   * `with` and `apart_from` may name consumers of the same call. A gang that would fit in another order may be refused. From 2.4.
   * With `waitMs` it waits as `place` does, if a consumer is placed by query; in a `line` all are of one project.
   *
   * @returns by consumer what each has now
   * @throws ApiError as for `place`; the message names the consumer
   */
  placeMany(
    claims: { readonly [consumer: string]: Placing | Claim<Version> },
    options?: PlacingOptions,
  ): Promise<{ readonly [consumer: string]: Placed }>;
  /** Deletes the allocations of a consumer. @throws ApiError 404 if it has none */
  delete(consumer: string, options?: WriteOptions): Promise<void>;
};

/** Inventories that move to other providers, together with the allocations on them. */
export type Reshape<Version extends Microversion = Microversion> = {
  readonly inventories: { readonly [provider: string]: NewInventories };
  readonly allocations: { readonly [consumer: string]: Claim<Version> };
};

const manySince = versionNumber('1.13');
const reshapeSince = versionNumber('1.30');
const placingSince = versionNumber('2.4');
const root = pathOf('allocations');
const isGuardedAt = (version: number): boolean => version >= claimsGuardedSince;

/** What the body of a dry run has in addition. */
const dryRunOf = ({ dryRun = false }: ClaimOptions = {}) => (dryRun ? { dry_run: true } : {});

/** What the body of a claim by query has in addition. */
const wishesOf = ({ line, ...options }: PlacingOptions = {}) => ({
  ...dryRunOf(options),
  ...(line === undefined ? {} : { line }),
});

/** The first version that supports the options and the claims, at least `since`. */
const sinceOf = (
  since: number,
  { dryRun = false, waitMs, line }: PlacingOptions = {},
  claims: Parameters<typeof sinceOfClaims>[0] = [],
) =>
  Math.max(
    since,
    dryRun ? placingSince : 0,
    waitMs === undefined && line === undefined ? 0 : waitingSince,
    sinceOfClaims(claims),
  );

/** Makes the calls about allocations. */
export function allocationCalls<Version extends Microversion>(ask: Ask): AllocationCalls<Version> {
  return {
    show: (consumer, options) => ask({ method: 'GET', path: root + pathOf(consumer) }, options),
    set: async (consumer, claim, options) =>
      ask(
        {
          method: 'PUT',
          path: root + pathOf(consumer),
          since: sinceOf(0, options, [claim]),
          body: (version) => ({ ...claimBody(claim, version), ...dryRunOf(options) }),
          repeatable: isGuardedAt,
        },
        options,
      ),
    setMany: async (claims, options) =>
      ask(
        {
          method: 'POST',
          path: root,
          since: sinceOf(manySince, options, Object.values(claims)),
          body: (version) => ({ ...claimBodies(claims, version), ...dryRunOf(options) }),
          repeatable: isGuardedAt,
        },
        options,
      ),
    place: (consumer, placing, options) =>
      ask(
        {
          method: 'PUT',
          path: root + pathOf(consumer),
          since: sinceOf(placingSince, options, [placing]),
          body: (version) => ({ ...placingBody(placing, version), ...wishesOf(options) }),
          repeatable: isGuarded,
          waitMs: options?.waitMs,
        },
        options,
      ),
    placeMany: async (claims, options) => {
      const body = (version: number) =>
        Object.entries<Placing | AnyClaim>(claims).map(([consumer, claim]) => [
          consumer,
          isPlacing(claim) ? placingBody(claim, version) : claimBody(claim, version),
        ]);
      const placed = await ask<{ readonly [consumer: string]: Placed } | undefined>(
        {
          method: 'POST',
          path: root,
          since: sinceOf(placingSince, options, Object.values<Placing | AnyClaim>(claims)),
          body: (version) => ({ ...Object.fromEntries(body(version)), ...wishesOf(options) }),
          repeatable: isGuarded,
          waitMs: options?.waitMs,
        },
        options,
      );
      // Without a consumer by query the answer has no body.
      return placed ?? {};
    },
    delete: (consumer, options) => ask({ method: 'DELETE', path: root + pathOf(consumer) }, options),
  };
}

/** Moves inventories and the allocations on them in one step. From 1.30. */
export const reshapeCall =
  <Version extends Microversion>(ask: Ask) =>
  async ({ inventories, allocations }: Reshape<Version>, options?: ClaimOptions): Promise<void> =>
    ask(
      {
        method: 'POST',
        path: pathOf('reshaper'),
        since: sinceOf(reshapeSince, options),
        body: (version) => ({ inventories, allocations: claimBodies(allocations, version), ...dryRunOf(options) }),
        repeatable: isGuardedAt,
      },
      options,
    );
