import { parseCandidateRequest } from '../../src/api/candidates/query.ts';
import type { Claim } from '../../src/claims/claim.ts';
import { since } from '../../src/placement/microversions.ts';
import { parseQuery } from '../../src/rest/query_string.ts';

/** A claim of new consumers that are all placed by one query. */
export const byQuery = (uuids: readonly string[], text: string): Claim => ({
  consumers: uuids.map((uuid) => ({
    uuid,
    knownGeneration: null,
    projectId: 'project',
    userId: 'user',
    consumerType: undefined,
    allocations: new Map(),
    queries: [{ request: parseCandidateRequest(parseQuery(text), since.placing), conditions: [] }],
  })),
  inventories: [],
  placing: [...uuids.keys()],
});
