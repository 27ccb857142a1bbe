import { type Claim, claimBodies, claimBody, claimsGuardedSince } from './claim.ts';
import type { Resources } from './filters.ts';
import type { NewInventories } from './inventories.ts';
import type { Microversion, Since } from './microversions.ts';
import { answered, type Call, type CallOptions, pathOf, type Tagged, type WriteOptions } from './operation.ts';

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
  Partial<Tagged<Version>>;

/** Calls about the allocations of consumers. */
export type AllocationCalls<Version extends Microversion> = {
  show(consumer: string, options?: CallOptions): Promise<ConsumerAllocations<Version>>;
  /**
   * Replaces the allocations of a consumer. @throws ApiError 409 if they do not fit, or if something changed in between
   */
  set(consumer: string, claim: Claim<Version>, options?: WriteOptions): Promise<void>;
  /** Replaces the allocations of several consumers, all or none of them. From 1.13. */
  setMany(claims: { readonly [consumer: string]: Claim<Version> }, options?: WriteOptions): Promise<void>;
  /** Deletes the allocations of a consumer. @throws ApiError 404 if it has none */
  delete(consumer: string, options?: WriteOptions): Promise<void>;
};

/** Inventories that move to other providers, together with the allocations on them. */
export type Reshape<Version extends Microversion = Microversion> = {
  readonly inventories: { readonly [provider: string]: NewInventories };
  readonly allocations: { readonly [consumer: string]: Claim<Version> };
};

const manySince = 13;
const reshapeSince = 30;
const root = pathOf('allocations');
const isGuardedAt = (minor: number): boolean => minor >= claimsGuardedSince;

/** Makes the calls about allocations. */
export function allocationCalls<Version extends Microversion>(call: Call): AllocationCalls<Version> {
  return {
    show: (consumer, options) => answered(call({ method: 'GET', path: root + pathOf(consumer) }, options)),
    set: async (consumer, claim, options) =>
      void (await call(
        {
          method: 'PUT',
          path: root + pathOf(consumer),
          body: (minor) => claimBody(claim, minor),
          repeatable: isGuardedAt,
        },
        options,
      )),
    setMany: async (claims, options) =>
      void (await call(
        {
          method: 'POST',
          path: root,
          since: manySince,
          body: (minor) => claimBodies(claims, minor),
          repeatable: isGuardedAt,
        },
        options,
      )),
    delete: async (consumer, options) =>
      void (await call({ method: 'DELETE', path: root + pathOf(consumer) }, options)),
  };
}

/** Moves inventories and the allocations on them in one step. From 1.30. */
export const reshapeCall =
  <Version extends Microversion>(call: Call) =>
  async ({ inventories, allocations }: Reshape<Version>, options?: WriteOptions): Promise<void> =>
    void (await call(
      {
        method: 'POST',
        path: pathOf('reshaper'),
        since: reshapeSince,
        body: (minor) => ({ inventories, allocations: claimBodies(allocations, minor) }),
        repeatable: isGuardedAt,
      },
      options,
    ));
