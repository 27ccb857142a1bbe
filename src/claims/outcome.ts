import { isAbsent } from '../../db/statements/claims/claim_write.ts';
import type { WrittenClaims } from '../../db/statements/claims/write_claims.ts';
import { laterGeneration } from '../../db/statements/rows.ts';
import type { ClaimOutcome } from './claim.ts';
import type { Judged } from './judge_batch.ts';

const empty: ClaimOutcome = { consumers: [], providers: new Map() };

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
        formerName = null,
        name = formerName,
        etag = null,
      } = written.get(uuid) ?? {};
      return {
        uuid,
        allocations,
        projectId,
        userId,
        mappings: placement.mappings.get(uuid),
        consumerType,
        name,
        etag,
        expiresAtMs: expiresAtMs.get(uuid) ?? null,
        generation:
          generation === null ? 1 + (formerGenerations.get(uuid) ?? 0) : laterGeneration(generation, 1) + former,
      };
    }),
    providers: new Map(
      usageChanges.map(({ provider: { id, uuid, name, root, generation } }) => [
        uuid,
        { name, root: root.uuid, generation: generations.get(id) ?? generation },
      ]),
    ),
  };
}
