import { takeBackMemory } from '../candidates/answer_memory.ts';
import { parseCandidateRequest } from '../candidates/query.ts';
import { candidatesJson } from '../candidates/response.ts';
import { openSearch } from '../candidates/search.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { jsonBody } from '../rest/json_body.ts';
import { since } from '../rest/microversions.ts';
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
  return answerAtOneMoment(wanted, dependencies, (current, allowed) => {
    const { candidates, settle } = openSearch(current, wanted, { strategy, randomize, limited, allowed });
    const some = limited ? first(candidates, limit) : candidates;
    const body = jsonBody(candidatesJson(current, wanted, some, request.version), (giveUp) => {
      settle();
      return dependencies.fleet.hold(giveUp);
    });
    return {
      status: 200,
      body,
      lastModified: new Date(),
      ...changesToken(request, dependencies.fleet),
      // Only the memory of a body that is sent as a whole comes back.
      ...(body instanceof Uint8Array ? { release: () => takeBackMemory(body) } : {}),
    };
  });
}

function* first<Item>(items: Iterable<Item>, limit: number): Generator<Item> {
  let count = 0;
  if (limit <= 0) return;
  for (const item of items) {
    yield item;
    if (++count >= limit) return;
  }
}
