import { isAbsent } from '../../db/statements/claims/claim_write.ts';
import type { WrittenClaims } from '../../db/statements/claims/write_claims.ts';
import { laterGeneration } from '../../db/statements/generation.ts';
import type { EntityTag } from '../placement/entity_tag.ts';
import type { ConsumerClaim } from './claim.ts';
import type { Judged } from './effects.ts';
import type { Mappings } from './placing.ts';

/** What a consumer has once its claim is written. */
export type ConsumerOutcome = Pick<ConsumerClaim, 'uuid' | 'allocations' | 'projectId' | 'userId'> & {
  /** Of a consumer by query: the providers of each group. */
  readonly mappings: Mappings | undefined;
  /** Null for one without a type. */
  readonly consumerType: string | null;
  /** As clients know it from 1.40 on: claims by query are of later versions. */
  readonly generation: number;
  /** Null for one that has nothing. */
  readonly etag: EntityTag | null;
  /** When its term ends, in milliseconds since 1970; null for one that lasts. */
  readonly expiresAtMs: number | null;
};

/** What a claim came to. Empty for a claim without consumers by query: its client knows the outcome already. */
export type ClaimOutcome = {
  /** In the order of the claim. */
  readonly consumers: readonly ConsumerOutcome[];
  /** The generations of the providers of their allocations, by UUID. */
  readonly generations: ReadonlyMap<string, number>;
};

const empty: ClaimOutcome = { consumers: [], generations: new Map() };

/** The generations that the providers of a claim have after it, by their ids, if no other one is written. */
export const generationsAfter = ({ providers }: Judged['write']): ReadonlyMap<number, number> =>
  new Map(providers.map(({ providerId, generation, bump }) => [providerId, laterGeneration(generation, bump)]));

/**
 * The outcome of a claim that was written, or that a dry run has judged.
 *
 * @param generations of the providers, by their ids, as they were written
 * @param expiresAtMs when the terms of the consumers end, by their UUIDs
 * @param formerGenerations how many generations the former consumers of new ones had, by their UUIDs
 */
export function outcomeOf(
  { write, usageChanges, placement }: Pick<Judged, 'write' | 'usageChanges' | 'placement'>,
  {
    generations,
    expiresAtMs,
    formerGenerations,
  }: Pick<WrittenClaims, 'generations' | 'expiresAtMs' | 'formerGenerations'>,
): ClaimOutcome {
  if (placement === undefined) return empty;
  const present = write.consumers.filter((consumer) => !isAbsent(consumer));
  const written = new Map(present.map((consumer) => [consumer.uuid, consumer]));
  return {
    consumers: placement.claim.consumers.map(({ uuid, allocations, projectId, userId }) => {
      const {
        generation = null,
        formerGenerations: former = 0,
        consumerType = null,
        etag = null,
      } = written.get(uuid) ?? {};
      return {
        uuid,
        allocations,
        projectId,
        userId,
        mappings: placement.mappings.get(uuid),
        consumerType,
        etag,
        expiresAtMs: expiresAtMs.get(uuid) ?? null,
        generation:
          generation === null ? 1 + (formerGenerations.get(uuid) ?? 0) : laterGeneration(generation, 1) + former,
      };
    }),
    generations: new Map(
      usageChanges.map(({ provider: { id, uuid, generation } }) => [uuid, generations.get(id) ?? generation]),
    ),
  };
}
