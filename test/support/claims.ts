import type { ConsumerState, SeenAllocation } from '../../db/statements/claims/read_allocations.ts';
import type { Claim, ConsumerClaim } from '../../src/claims/claim.ts';
import type { CandidateRequest } from '../../src/search/request.ts';

/** A consumer of a claim; of no provider, and without a generation that the client knows, unless `more` says so. */
export const consumerClaim = (uuid: string, more: Partial<ConsumerClaim> = {}): ConsumerClaim => ({
  uuid,
  knownGeneration: undefined,
  projectId: 'project',
  userId: 'user',
  consumerType: undefined,
  allocations: new Map(),
  ...more,
});

/** A claim of some VCPU on one provider. */
export const claimOn = (provider: string, uuid: string, amount: number, more: Partial<ConsumerClaim> = {}): Claim => ({
  consumers: [consumerClaim(uuid, { allocations: new Map([[provider, new Map([['VCPU', amount]])]]), ...more })],
  inventories: [],
});

/** The queries of a consumer, without conditions for refusals. */
export const queriesOf = (...requests: readonly CandidateRequest[]): Pick<ConsumerClaim, 'queries'> => ({
  queries: requests.map((request) => ({ request, conditions: [] })),
});

/** A claim of one new consumer by queries. */
export const claimByQueries = (uuid: string, ...requests: readonly CandidateRequest[]): Claim => ({
  consumers: [consumerClaim(uuid, { knownGeneration: null, ...queriesOf(...requests) })],
  inventories: [],
  placing: [0],
});

/** A consumer as the database has it. */
export const consumerState = (
  uuid: string,
  allocations: readonly SeenAllocation[],
  more: Partial<ConsumerState> = {},
): ConsumerState => ({
  uuid,
  id: 1,
  generation: 1,
  formerGenerations: 0,
  projectId: 'project',
  userId: 'user',
  consumerType: null,
  name: null,
  allocations,
  ...more,
});
