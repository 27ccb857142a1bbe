import { takeBackMemory } from '../candidates/answer_memory.ts';
import { parseCandidateRequest } from '../candidates/query.ts';
import { candidatesJson } from '../candidates/response.ts';
import { search } from '../candidates/search.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { jsonBody } from '../rest/json_body.ts';
import { since } from '../rest/microversions.ts';
import { changesToken } from './changes_token.ts';
import type { Dependencies } from './dependencies.ts';
import { freshTrees } from './trees_of_consumers.ts';

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
  const { current, allowed } = await freshTrees(wanted, dependencies);
  const limited = limit < Number.POSITIVE_INFINITY;
  const all = search(current, wanted, { strategy, randomize, limited, allowed });
  const some = limited ? first(all, limit) : all;
  // What follows an order is found at once, since the order changes with the fleet.
  const candidates = limited && wanted.order.length > 0 ? [...some] : some;
  const body = jsonBody(candidatesJson(current, wanted, candidates, request.version));
  return {
    status: 200,
    body,
    lastModified: new Date(),
    ...changesToken(request, dependencies.fleet),
    // Only the memory of a body that is sent as a whole comes back.
    ...(body instanceof Uint8Array ? { release: () => takeBackMemory(body) } : {}),
  };
}

function* first<Item>(items: Iterable<Item>, limit: number): Generator<Item> {
  let count = 0;
  if (limit <= 0) return;
  for (const item of items) {
    yield item;
    if (++count >= limit) return;
  }
}
