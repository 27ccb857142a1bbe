import { parseCandidateRequest } from '../candidates/query.ts';
import { candidatesJson } from '../candidates/response.ts';
import { search } from '../candidates/search.ts';
import type { Answer, ApiRequest, Endpoint } from './endpoint.ts';
import { jsonBody } from './json_body.ts';
import type { Parts } from './parts.ts';

// Routes

export const allocationCandidateEndpoints: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/allocation_candidates',
    since: 10,
    policy: 'placement:allocation_candidates:list',
    answersJson: true,
    handle: list,
  },
];

// Handlers

async function list(request: ApiRequest, { config, fleet }: Parts): Promise<Answer> {
  const {
    allocationCandidatesGenerationStrategy: strategy,
    randomizeAllocationCandidates: randomize,
    maxAllocationCandidates: max,
  } = config.placement;
  const wanted = parseCandidateRequest(request.query(), request.version);
  const limit = Math.min(wanted.limit ?? Number.POSITIVE_INFINITY, max < 0 ? Number.POSITIVE_INFINITY : max);
  const current = await fleet.fresh();
  const limited = limit < Number.POSITIVE_INFINITY;
  const all = search(current, wanted, { strategy, randomize, limited });
  const candidates = limited ? first(all, limit) : all;
  return {
    status: 200,
    body: jsonBody(candidatesJson(current, wanted, candidates, request.version)),
    lastModified: new Date(),
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
