import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import { type Affinity, affinityOf } from '../../src/claims/affinity.ts';
import { type Claim, type ClaimOutcome, ClaimRefused, type ConsumerClaim } from '../../src/claims/claim.ts';
import { judge } from '../../src/claims/judge.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { nameOf } from '../../src/fleet/model/names.ts';
import { type Amount, openOverlay } from '../../src/fleet/model/overlay.ts';
import type { Provider } from '../../src/fleet/model/provider.ts';
import { ApiError } from '../../src/request/errors.ts';
import { type Candidate, takenByProvider } from '../../src/search/choices.ts';
import type { CandidateRequest } from '../../src/search/request.ts';
import { requireKnownNames, resolveOrder } from '../../src/search/resolve.ts';
import { search } from '../support/search.ts';

/*
 * What may come of a claim on a fleet that was loaded from the database right before it. Equal trees are chosen at random, so
 * all candidates are checked.
 */

type States = ReadonlyMap<string, ConsumerState>;
type Allocations = ConsumerClaim['allocations'];

/** A way to place a consumer by one of its queries. */
type Way = {
  readonly key: string;
  readonly request: CandidateRequest;
  readonly allocations: Allocations;
  readonly taken: readonly Amount[];
};

/** What is wrong with the outcome of a claim; undefined if it is one of those that are possible. */
export function complaintAbout(
  fleet: Fleet,
  claim: Claim,
  states: States,
  outcome: ClaimOutcome | ClaimRefused,
): string | undefined {
  if (outcome instanceof ClaimRefused) {
    if (mayBeRefused(fleet, claim, states, outcome)) return undefined;
    return `it was refused, ${outcome.reason}: ${outcome.message}`;
  }
  const placed = new Map(outcome.consumers.map((consumer) => [consumer.uuid, consumer]));
  const path: Way[] = [];
  for (const index of claim.placing ?? []) {
    const { uuid = '' } = claim.consumers[index] ?? {};
    const { allocations = new Map(), mappings = new Map() } = placed.get(uuid) ?? {};
    const key = keyOf(allocations, mappings);
    const ways = waysOf(fleet, claim, states, path);
    const way = typeof ways === 'string' ? undefined : ways.find((each) => each.key === key);
    if (way === undefined) {
      return `consumer ${uuid} was placed by ${key}, but possible is ${typeof ways === 'string' ? ways : ways.map((each) => each.key).join('; ') || 'nothing'}`;
    }
    path.push(way);
  }
  // With these allocations, it must be possible as a plain claim.
  const consumers = claim.consumers.map((each) => ({
    ...each,
    allocations: placed.get(each.uuid)?.allocations ?? each.allocations,
  }));
  const refusal = refusalOf(fleet, { consumers, inventories: [] }, states);
  return refusal && `with its allocations it is refused: ${refusal.message}`;
}

/** Whether some choice of places ends in such a refusal. */
function mayBeRefused(fleet: Fleet, claim: Claim, states: States, { reason }: ClaimRefused): boolean {
  // By chance one of these may choose the same places.
  for (let attempt = 0; attempt < 5; attempt += 1) {
    if (refusalOf(fleet, claim, states)?.reason === reason) return true;
  }
  return reason === 'no candidates' && mayFitNowhere(fleet, claim, states, [], { left: 2000 });
}

function mayFitNowhere(
  fleet: Fleet,
  claim: Claim,
  states: States,
  path: readonly Way[],
  work: { left: number },
): boolean {
  if (path.length === (claim.placing ?? []).length) return false;
  const ways = waysOf(fleet, claim, states, path);
  if (typeof ways === 'string' || ways.length === 0) return true;
  work.left -= ways.length;
  if (work.left < 0) throw new Error('The claim has too many candidates for a test.');
  return ways.some((way) => mayFitNowhere(fleet, claim, states, [...path, way], work));
}

function refusalOf(fleet: Fleet, claim: Claim, states: States): ClaimRefused | undefined {
  try {
    judge(fleet, claim, states);
    return undefined;
  } catch (error) {
    if (error instanceof ClaimRefused) return error;
    throw error;
  }
}

/** All ways to place the next consumer, by the first of its queries that has any, or why it is refused. */
function waysOf(fleet: Fleet, claim: Claim, states: States, path: readonly Way[]): readonly Way[] | string {
  const placing = claim.placing ?? [];
  const index = placing[path.length] ?? 0;
  const affinity = affinityOf(fleet, claim, states, true);
  const overlay = openOverlay(fleet);
  try {
    const held = claim.consumers.flatMap(({ uuid }) => states.get(uuid)?.allocations ?? []);
    overlay.free(held.flatMap(({ providerId, classId, used }) => amountAt(fleet.byId.get(providerId), classId, used)));
    for (const { allocations } of claim.consumers) overlay.add(takenBy(fleet, allocations));
    for (const [index, way] of path.entries()) {
      overlay.add(way.taken);
      const consumer = claim.consumers[placing[index] ?? 0];
      if (consumer !== undefined) {
        affinity.note(placing[index] ?? 0, { ...consumer, allocations: way.allocations }, way.request);
      }
    }
    const queries = claim.consumers[index]?.queries ?? [];
    for (const { request, conditions } of queries) {
      requireKnownNames(fleet, conditions);
      resolveOrder(fleet, request.order);
    }
    for (const { request } of queries) {
      const ways = waysBy(fleet, request, affinity, index);
      if (ways.length > 0) return ways;
    }
    return [];
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  } finally {
    overlay.hide();
  }
}

function waysBy(fleet: Fleet, request: CandidateRequest, affinity: Affinity, index: number): readonly Way[] {
  const allowed = affinity.allowedTrees(index, request);
  const options = { strategy: 'depth-first', randomize: false, limited: false, allowed } as const;
  return Array.from(search(fleet, request, options), (candidate) => wayOf(fleet, request, candidate));
}

function wayOf(fleet: Fleet, request: CandidateRequest, candidate: Candidate): Way {
  const byProvider = takenByProvider(candidate);
  const allocations = new Map(
    Array.from(byProvider, ([{ uuid }, amounts]) => [
      uuid,
      new Map(Array.from(amounts, ([classId, amount]) => [nameOf(fleet.classes, classId), amount])),
    ]),
  );
  const mappings = new Map(candidate.map(({ group, providers }) => [group.suffix, providers.map(({ uuid }) => uuid)]));
  const taken = [...byProvider].flatMap(([provider, amounts]) =>
    Array.from(amounts, ([classId, amount]) => ({ provider, classId, amount })),
  );
  return { key: keyOf(allocations, mappings), request, allocations, taken };
}

const amountAt = (provider: Provider | undefined, classId: number, amount: number): readonly Amount[] =>
  provider === undefined ? [] : [{ provider, classId, amount }];

const takenBy = (fleet: Fleet, allocations: Allocations): readonly Amount[] =>
  [...allocations].flatMap(([uuid, amounts]) =>
    [...amounts].flatMap(([name, amount]) =>
      amountAt(fleet.byUuid.get(uuid), fleet.classes.byName.get(name)?.id ?? -1, amount),
    ),
  );

/** The same text for the same allocations and groups, in whatever order they are. */
function keyOf(allocations: Allocations, mappings: ReadonlyMap<string, readonly string[]>): string {
  const amounts = Array.from(allocations, ([uuid, of]) => `${uuid} ${[...of].sort().join(' ')}`);
  const groups = Array.from(mappings, ([suffix, uuids]) => `${suffix}=${[...new Set(uuids)].sort().join(',')}`);
  return `${amounts.sort().join(' and ')} for ${groups.sort().join(' ')}`;
}
