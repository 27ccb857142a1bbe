import type { Database } from '../../db/engine/connect.ts';
import { isOfOneWrite, repeatLostRaces } from '../../db/engine/failures.ts';
import { type ConsumerWrite, isAbsent } from '../../db/statements/claims/claim_write.ts';
import { ensureOwners } from '../../db/statements/claims/ensure_owners.ts';
import type { WrittenClaims } from '../../db/statements/claims/write_claims.ts';
import { laterGeneration } from '../../db/statements/rows.ts';
import { inBatches } from '../queue/queue.ts';
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

/** The project, user and type that a consumer is to have. */
type NamedOwner = Pick<ConsumerWrite, 'projectExternalId' | 'userExternalId' | 'consumerType'>;

/** Creates the projects, users and consumer types that claims name. */
export type Owners = {
  /**
   * Resolves when those of a claim exist. It waits if another transaction has inserted one of them and did not end yet.
   */
  ensure(claim: { readonly consumers: readonly NamedOwner[] }): Promise<unknown>;
};

type OwnerName = { readonly kind: 'projects' | 'users' | 'types'; readonly name: string };

/** How many names one transaction inserts. */
const batchLimit = 256;

/** If another transaction has inserted a name and not committed it, only the claims with this name wait for it. */
export function openOwners(database: Database): Owners {
  const ensure = inBatches<OwnerName, void>(
    database,
    {
      limit: batchLimit,
      orderOf: (owner) => [keyOf(owner)],
      isOfOne: isOfOneWrite,
    },
    async (batch, wait) => {
      const namesOf = (kind: OwnerName['kind']) =>
        batch.filter(({ item }) => item.kind === kind).map(({ item }) => item.name);
      const names = { projects: namesOf('projects'), users: namesOf('users'), types: namesOf('types') };
      await repeatLostRaces(() => ensureOwners(database, names, wait));
      for (const { resolve } of batch) resolve();
    },
  );
  return {
    ensure: ({ consumers }) => Promise.all(namedBy(consumers).map(ensure)),
  };
}

const keyOf = ({ kind, name }: OwnerName): string => `${kind} ${name}`;

/** Each name once: equal names would be created one after the other, with a round trip for each. */
function namedBy(consumers: readonly NamedOwner[]): readonly OwnerName[] {
  const names = consumers.flatMap(({ projectExternalId, userExternalId, consumerType }): OwnerName[] => [
    { kind: 'projects', name: projectExternalId },
    { kind: 'users', name: userExternalId },
    ...(consumerType === null ? [] : [{ kind: 'types', name: consumerType } as const]),
  ]);
  return [...new Map(names.map((name) => [keyOf(name), name])).values()];
}
