import type { Resources } from './filters.ts';
import type { AskedSince, Microversion } from './microversions.ts';

/** Which providers serve which group of a candidate request, by the group's suffix. */
export type Mappings = { readonly [suffix: string]: readonly string[] };

/** What a consumer is to have. */
export type Claim<Version extends Microversion = Microversion> = {
  /** By the providers' UUIDs; nothing (from 1.28, and in a claim of several consumers) gives everything back. */
  readonly allocations: { readonly [provider: string]: { readonly resources: Resources } };
} & AskedSince<Version, '1.8', { readonly project_id: string; readonly user_id: string }> &
  AskedSince<
    Version,
    '1.28',
    {
      /** The consumer's generation as it was read, null for a new consumer: the claim is refused where it changed since. */
      readonly consumer_generation: number | null;
    }
  > &
  AskedSince<Version, '1.34', { readonly mappings?: Mappings | undefined }> &
  AskedSince<
    Version,
    '1.38',
    {
      /** What kind of thing it is, such as `INSTANCE`. */
      readonly consumer_type: string;
    }
  >;

/** A claim of any version, as the client writes it down. */
export type AnyClaim = {
  readonly allocations: Claim['allocations'];
  readonly project_id?: string | undefined;
  readonly user_id?: string | undefined;
  readonly consumer_generation?: number | null | undefined;
  readonly mappings?: Mappings | undefined;
  readonly consumer_type?: string | undefined;
};

/** From 1.28 on a claim names the consumer's generation, so that it cannot be carried out twice. */
export const claimsGuardedSince = 28;

/** The fields of a claim by the minor version that brought them. */
const fieldsSince = {
  project_id: 8,
  user_id: 8,
  consumer_generation: claimsGuardedSince,
  mappings: 34,
  consumer_type: 38,
};
/** Up to 1.11 allocations were a list. */
const byProviderSince = 12;

/** A claim in the form of a version: what it does not know is left out. */
export function claimBody(claim: AnyClaim, minor: number): Readonly<Record<string, unknown>> {
  const entries: [string, unknown][] = [['allocations', allocationsBody(claim.allocations, minor)]];
  const { project_id, user_id, consumer_generation, mappings, consumer_type } = claim;
  const fields = { project_id, user_id, consumer_generation, mappings, consumer_type };
  for (const [name, since] of Object.entries(fieldsSince)) {
    const value = fields[name as keyof typeof fields]; // fieldsSince has the same keys
    if (minor >= since && value !== undefined) entries.push([name, value]);
  }
  return Object.fromEntries(entries);
}

function allocationsBody(allocations: AnyClaim['allocations'], minor: number): unknown {
  const entries = Object.entries(allocations);
  return minor >= byProviderSince
    ? Object.fromEntries(entries.map(([uuid, { resources }]) => [uuid, { resources }]))
    : entries.map(([uuid, { resources }]) => ({ resource_provider: { uuid }, resources }));
}

/** Claims of several consumers, by their UUIDs. */
export const claimBodies = (claims: { readonly [consumer: string]: AnyClaim }, minor: number) =>
  Object.fromEntries(Object.entries(claims).map(([consumer, claim]) => [consumer, claimBody(claim, minor)]));
