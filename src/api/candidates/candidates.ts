import { repeatLostRaces } from '../../../db/engine/failures.ts';
import { type ConsumerState, readConsumers } from '../../../db/statements/claims/read_allocations.ts';
import { haveTheSame } from '../../claims/write_batch.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { since } from '../../placement/microversions.ts';
import { spellingsOf } from '../../placement/uuid.ts';
import { badRequest } from '../../request/errors.ts';
import { changedTooMuch, inPieces, mostWorkMs } from '../../request/turns.ts';
import { untilDone } from '../../request/until_done.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import { madeInTurns } from '../../rest/made_in_turns.ts';
import { type AllowedTrees, allowedTreesOf, allTrees, heldTrees } from '../../search/anchors.ts';
import type { Candidate } from '../../search/choices.ts';
import type { CandidateRequest } from '../../search/request.ts';
import { resolveVariant } from '../../search/resolve.ts';
import { openSearch, resolveForSearch } from '../../search/search.ts';
import { changesToken } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import { candidatesJson } from './answer.ts';
import { parseCandidateRequest } from './query.ts';

// Routes

export const allocationCandidateEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/allocation_candidates',
    since: since.allocationCandidates,
    policy: 'placement:allocation_candidates:list',
    answersJson: true,
    takesParameters: true,
    handle: list,
  },
];

// Handlers

async function list(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const {
    allocationCandidatesGenerationStrategy: strategy,
    randomizeAllocationCandidates: randomize,
    maxAllocationCandidates: max,
  } = dependencies.config.placement;
  const wanted = parseCandidateRequest(request.query(), request.version);
  const limit = Math.min(wanted.limit ?? Number.POSITIVE_INFINITY, max < 0 ? Number.POSITIVE_INFINITY : max);
  const limited = limit < Number.POSITIVE_INFINITY;
  const turns = request.turns();
  return answerAtOneSnapshot(wanted, dependencies, async (fleet, allowed) => {
    const token = changesToken(request, dependencies.fleet);
    let current = fleet;
    let resolved = inPieces(resolveForSearch(current, wanted, undefined, { turns }), turns, tooWide);
    // Await only if it is a promise: an await lets the fleet change, and names, allowed trees and the answer must be of one snapshot.
    if (resolved instanceof Promise) {
      // Trees that were found by the first names stay as they were until the last name is looked up.
      const held = dependencies.fleet.hold(() => {});
      const isNothing = (await resolved.finally(held.end)) === 'nothing';
      current = await dependencies.fleet.fresh();
      resolved = isNothing ? 'nothing' : resolveVariant(current, wanted);
    }
    const { candidates, settle } = openSearch(current, resolved, {
      strategy,
      randomize,
      limited,
      allowed: allowed(current),
      turns,
    });
    const some = limited ? first(candidates, limit) : candidates;
    const hold = (giveUp: () => void) => {
      settle();
      return dependencies.fleet.hold(giveUp);
    };
    const make = () => candidatesJson(current, wanted, some, request.version, turns);
    const made = await madeInTurns(request, { hold }, make, tooWide);
    return { status: 200, ...made, lastModified: new Date(), ...token };
  });
}

const tooWide = () =>
  badRequest(
    `The search for allocation candidates was stopped after ${mostWorkMs / 1000} s without a candidate. Ask for fewer request groups, or ` +
      'name a tree, an aggregate or a trait that few hosts have.',
  );

/** The first candidates, and undefined between them where the search may pause. */
function* first(candidates: Iterable<Candidate | undefined>, limit: number): Generator<Candidate | undefined> {
  let count = 0;
  if (limit <= 0) return;
  for (const candidate of candidates) {
    yield candidate;
    if (candidate !== undefined && ++count >= limit) return;
  }
}

/**
 * Answers a request by the fleet as it is now, and by the trees that its `with` and `apart_from` leave. What the consumers hold is
 * read before the fleet and after it: only if both reads are equal, fleet and consumers are of one snapshot; otherwise the request is
 * answered again.
 *
 * @param answer gets the fleet, and the function for the trees that are left in it. If it awaits anything before it holds the snapshot, it
 *   must refresh the fleet again. It must not await anything between `settle` of the search and holding the snapshot of the fleet
 * @throws ApiError 503 if what the consumers hold has changed each time
 */
async function answerAtOneSnapshot(
  request: Pick<CandidateRequest, 'with' | 'apartFrom'>,
  { database, fleet }: Pick<Dependencies, 'database' | 'fleet'>,
  answer: (fleet: Fleet, allowed: (current: Fleet) => AllowedTrees) => Promise<Answer>,
): Promise<Answer> {
  // In each spelling that the database may have.
  const named = [...new Set([...request.with, ...request.apartFrom].flatMap(spellingsOf))];
  if (named.length === 0) return answer(await fleet.fresh(), () => allTrees);
  const read = () => repeatLostRaces(() => readConsumers(database, named));
  let before = await read();
  const attempt = async (): Promise<Answer | undefined> => {
    const fresh = await fleet.fresh();
    const states = before;
    const made = await answer(fresh, (current) => {
      const treesOf = (uuid: string) => [...heldTrees(current, providersOf(current, states.get(uuid)))];
      return allowedTreesOf(request, (uuid) => new Set(spellingsOf(uuid).flatMap(treesOf)));
    });
    let isSent = false;
    try {
      before = await read();
      isSent = haveTheSame(named, states, before);
      return isSent ? made : undefined;
    } finally {
      if (!isSent) discard(made);
    }
  };
  return untilDone(attempt, { lostRace: changedTooMuch });
}

/** Frees the memory and the held snapshot of an answer that is not sent. */
function discard({ body, release }: Answer): void {
  release?.();
  if (typeof body === 'object' && !(body instanceof Uint8Array)) body.return();
}

const providersOf = ({ byId }: Fleet, state: ConsumerState | undefined) =>
  (state?.allocations ?? []).flatMap(({ providerId }) => byId.get(providerId) ?? []);
