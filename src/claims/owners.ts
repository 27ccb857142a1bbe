import type { Database } from '../../db/engine/connect.ts';
import { isOfOneWrite, repeatLostRaces } from '../../db/engine/failures.ts';
import type { ConsumerWrite } from '../../db/statements/claims/claim_write.ts';
import { ensureOwners } from '../../db/statements/claims/ensure_owners.ts';
import { inBatches } from '../queue/queue.ts';

/** The project, user and type that a write sets for a consumer. */
type NamedOwner = Pick<ConsumerWrite, 'projectExternalId' | 'userExternalId' | 'consumerType'>;

/** Creates the projects, users and consumer types that claims name. */
export type Owners = {
  /**
   * Resolves when the projects, users and types of a claim exist. It waits for a transaction that has inserted one and is not committed.
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
      conflictKeysOf: (owner) => [keyOf(owner)],
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
