import { repeatLostRaces } from '../../db/engine/lost_race.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/claims/read_consumers.ts';
import { type AllowedTrees, allowedTreesOf, allTrees, heldTrees } from '../candidates/allowed_trees.ts';
import type { CandidateRequest } from '../candidates/request.ts';
import { haveTheSame } from '../claims/give_refusals.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { normalUuid } from '../placement/uuid.ts';
import type { Answer } from '../rest/endpoint.ts';
import type { Dependencies } from './dependencies.ts';

/**
 * Answers a request by the fleet as it is now, and by the trees that its `with` and `apart_from` leave. What the consumers hold is
 * read before the fleet and after it: only where it is the same both were true at one moment; otherwise the request is answered anew.
 *
 * @param answer must not await anything between asking for the trees that are left and holding the moment of the fleet
 */
export async function answerAtOneMoment(
  request: Pick<CandidateRequest, 'with' | 'apartFrom'>,
  { database, fleet }: Pick<Dependencies, 'database' | 'fleet'>,
  answer: (current: Fleet, allowed: () => AllowedTrees) => Promise<Answer>,
): Promise<Answer> {
  // In each spelling that the database may have.
  const named = [...new Set([...request.with, ...request.apartFrom].flatMap((uuid) => [uuid, normalUuid(uuid)]))];
  if (named.length === 0) return answer(await fleet.fresh(), () => allTrees);
  const read = () => repeatLostRaces(() => readConsumers(database, named));
  for (let before = await read(); ; ) {
    const current = await fleet.fresh();
    const states = before;
    const treesOf = (uuid: string) => heldTrees(current, providersOf(current, states.get(uuid)));
    const made = await answer(current, () =>
      allowedTreesOf(request, (uuid) => treesOf(uuid).union(treesOf(normalUuid(uuid)))),
    );
    let isSent = false;
    try {
      const after = await read();
      isSent = haveTheSame(named, before, after);
      if (isSent) return made;
      before = after;
    } finally {
      if (!isSent) discard(made);
    }
  }
}

/** Frees what is kept for an answer that is not sent. */
function discard({ body, release }: Answer): void {
  release?.();
  if (typeof body === 'object' && !(body instanceof Uint8Array)) body.return();
}

const providersOf = ({ byId }: Fleet, state: ConsumerState | undefined) =>
  (state?.allocations ?? []).flatMap(({ providerId }) => byId.get(providerId) ?? []);
