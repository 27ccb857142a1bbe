import { repeatLostRaces } from '../../db/engine/lost_race.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/claims/read_consumers.ts';
import { type AllowedTrees, allowedTreesOf, allTrees, heldTrees } from '../candidates/allowed_trees.ts';
import type { CandidateRequest } from '../candidates/request.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { normalUuid } from '../placement/uuid.ts';
import type { Dependencies } from './dependencies.ts';

/**
 * The fleet as it is now, and the trees that `with` and `apart_from` of a request leave: what the consumers hold is read
 * while the fleet is refreshed.
 */
export async function freshTrees(
  request: Pick<CandidateRequest, 'with' | 'apartFrom'>,
  { database, fleet }: Pick<Dependencies, 'database' | 'fleet'>,
): Promise<{ readonly current: Fleet; readonly allowed: AllowedTrees }> {
  // In each spelling that the database may have.
  const named = [...request.with, ...request.apartFrom].flatMap((uuid) => [uuid, normalUuid(uuid)]);
  if (named.length === 0) return { current: await fleet.fresh(), allowed: allTrees };
  const [states] = await Promise.all([
    repeatLostRaces(() => readConsumers(database, [...new Set(named)])),
    fleet.fresh(),
  ]);
  // Not what the refresh returned: the fleet may have been loaded anew since, and the token of the answer is of the new one.
  const { known } = fleet;
  const knowsAll = [...states.values()].every(({ allocations }) =>
    allocations.every(({ providerId }) => known.byId.get(providerId) !== undefined),
  );
  // A provider that was made after the refresh; one that is still unknown after another refresh is gone.
  const current = knowsAll ? known : await fleet.fresh();
  const treesOf = (uuid: string) => heldTrees(current, providersOf(current, states.get(uuid)));
  const allowed = allowedTreesOf(request, (uuid) => treesOf(uuid).union(treesOf(normalUuid(uuid))));
  return { current, allowed };
}

const providersOf = ({ byId }: Fleet, state: ConsumerState | undefined) =>
  (state?.allocations ?? []).flatMap(({ providerId }) => byId.get(providerId) ?? []);
