import { takeBackMemory } from '../candidates/answer_memory.ts';
import type { Candidate } from '../candidates/candidate.ts';
import { parseCandidateRequest } from '../candidates/query.ts';
import { candidatesJson } from '../candidates/response.ts';
import { openSearch, resolveForSearch } from '../candidates/search.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { badRequest } from '../rest/errors.ts';
import { jsonBody } from '../rest/json_body.ts';
import { since } from '../rest/microversions.ts';
import { inPieces, mostWorkMs } from '../rest/pieces.ts';
import { changesToken } from './changes_token.ts';
import type { Dependencies } from './dependencies.ts';
import { answerAtOneMoment } from './trees_of_consumers.ts';

// Routes

export const allocationCandidateEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/allocation_candidates',
    since: since.allocationCandidates,
    policy: 'placement:allocation_candidates:list',
    answersJson: true,
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
  return answerAtOneMoment(wanted, dependencies, async (current, allowed) => {
    const token = changesToken(request, dependencies.fleet);
    let resolved = inPieces(resolveForSearch(current, wanted, undefined, { turns }), turns, tooWide);
    // Where nothing was awaited nothing may be: the trees that are allowed, and the answer, are of one moment.
    if (resolved instanceof Promise) resolved = await resolved;
    const { candidates, settle } = openSearch(current, resolved, {
      strategy,
      randomize,
      limited,
      allowed: allowed(),
      turns,
    });
    const some = limited ? first(candidates, limit) : candidates;
    const hold = (giveUp: () => void) => {
      settle();
      return dependencies.fleet.hold(giveUp);
    };
    const body = await jsonBody(candidatesJson(current, wanted, some, request.version, turns), hold, turns, tooWide);
    return {
      status: 200,
      body,
      lastModified: new Date(),
      ...token,
      // Only the memory of a body that is sent as a whole comes back.
      ...(body instanceof Uint8Array ? { release: () => takeBackMemory(body) } : {}),
    };
  });
}

const tooWide = () =>
  badRequest(
    `The search for allocation candidates was given up after ${mostWorkMs / 1000} s without a candidate. Ask for fewer request groups, or ` +
      'name a tree, an aggregate or a trait that few hosts have.',
  );

/** The first candidates, and the places between them where the search may pause. */
function* first(candidates: Iterable<Candidate | undefined>, limit: number): Generator<Candidate | undefined> {
  let count = 0;
  if (limit <= 0) return;
  for (const candidate of candidates) {
    yield candidate;
    if (candidate !== undefined && ++count >= limit) return;
  }
}
