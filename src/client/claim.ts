import type { Resources } from './filters.ts';
import { type Microversion, type RequestSince, versionNumber } from './microversions.ts';

/** Which providers serve which group of a candidate request, by the group's suffix. */
export type Mappings = { readonly [suffix: string]: readonly string[] };

/** The new allocations of a consumer. */
export type Claim<Version extends Microversion = Microversion> = {
  /**
   * By the UUIDs of the providers. An empty object (from 1.28, or in a claim of several consumers) deletes all
   * allocations.
   */
  readonly allocations: { readonly [provider: string]: { readonly resources: Resources } };
} & RequestSince<Version, '1.8', { readonly project_id: string; readonly user_id: string }> &
  RequestSince<
    Version,
    '1.28',
    {
      /**
       * The consumer's generation as it was read; null for a new consumer. If it has changed since, the claim is
       * refused.
       */
      readonly consumer_generation: number | null;
    }
  > &
  RequestSince<Version, '1.34', { readonly mappings?: Mappings | undefined }> &
  RequestSince<
    Version,
    '1.38',
    {
      /** The kind of consumer, such as `INSTANCE`. */
      readonly consumer_type: string;
    }
  > &
  RequestSince<
    Version,
    '2.6',
    {
      /**
       * After this number of seconds the consumer is removed with its allocations, unless its term is renewed or the
       * consumer is written again before. The client does not send such a claim to a server without terms. The reshaper
       * takes no term: there consumers keep their terms.
       */
      readonly expires_in?: number | undefined;
    }
  > &
  RequestSince<
    Version,
    '2.9',
    {
      /** The name that people see: 1 to 255 characters. Null removes the name; without this field it stays. */
      readonly name?: string | null | undefined;
    }
  >;

/** A claim with the fields of all versions. */
export type AnyClaim = {
  readonly allocations: Claim['allocations'];
  readonly project_id?: string | undefined;
  readonly user_id?: string | undefined;
  readonly consumer_generation?: number | null | undefined;
  readonly mappings?: Mappings | undefined;
  readonly consumer_type?: string | undefined;
  readonly expires_in?: number | undefined;
  readonly name?: string | null | undefined;
};

/** The version that introduced terms. */
export const termsSince = versionNumber('2.6');

/** The version that introduced names. The client does not send them to an older server, which stores none. */
export const namesSince = versionNumber('2.9');

/** The first version that can carry out some claims. A server without terms would write a claim that never expires. */
export const sinceOfClaims = (claims: readonly { readonly expires_in?: number | undefined }[]): number =>
  claims.some(({ expires_in }) => expires_in !== undefined) ? termsSince : 0;

/** From 1.28 on a claim names the consumer's generation, so the server cannot execute it twice. */
export const claimsGuardedSince = versionNumber('1.28');

/** The fields of a claim by the version that introduced them. */
const fieldsSince = {
  project_id: versionNumber('1.8'),
  user_id: versionNumber('1.8'),
  consumer_generation: claimsGuardedSince,
  mappings: versionNumber('1.34'),
  consumer_type: versionNumber('1.38'),
  expires_in: termsSince,
  name: namesSince,
};
/** Before 1.12 allocations were a list. */
const byProviderSince = versionNumber('1.12');

/** A claim in the form of a version. Fields that the version does not have are left out. */
export function claimBody(claim: AnyClaim, version: number): Readonly<Record<string, unknown>> {
  const entries: [string, unknown][] = [['allocations', allocationsBody(claim.allocations, version)]];
  const { project_id, user_id, consumer_generation, mappings, consumer_type, expires_in, name } = claim;
  const fields = { project_id, user_id, consumer_generation, mappings, consumer_type, expires_in, name };
  for (const [field, since] of Object.entries(fieldsSince)) {
    const value = fields[field as keyof typeof fields]; // fieldsSince has the same keys
    if (version >= since && value !== undefined) entries.push([field, value]);
  }
  return Object.fromEntries(entries);
}

function allocationsBody(allocations: AnyClaim['allocations'], version: number): unknown {
  const entries = Object.entries(allocations);
  return version >= byProviderSince
    ? Object.fromEntries(entries.map(([uuid, { resources }]) => [uuid, { resources }]))
    : entries.map(([uuid, { resources }]) => ({ resource_provider: { uuid }, resources }));
}

/** Claims of several consumers, by their UUIDs. */
export const claimBodies = (claims: { readonly [consumer: string]: AnyClaim }, version: number) =>
  Object.fromEntries(Object.entries(claims).map(([consumer, claim]) => [consumer, claimBody(claim, version)]));
