import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { candidatesJson } from '../../src/api/candidates/answer.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { openOverlay } from '../../src/fleet/model/overlay.ts';
import { cacheOf } from '../../src/fleet/model/provider.ts';
import { ApiError } from '../../src/request/errors.ts';
import type { CandidateRequest, RequestGroup } from '../../src/search/request.ts';
import { changeFleet } from '../fleet/change_fleet.ts';
import { createFleet } from '../fleet/made_up_fleet.ts';
import { textOfChunks } from '../support/chunks.ts';
import { search } from '../support/search.ts';
import { groupOf, requestOf } from './plain_request.ts';
import { anyChange } from './random_change.ts';
import { anyRequest } from './random_request.ts';
import { anyTopology } from './random_topology.ts';
import { classNames, fleetOf, nodeAt, rowsOf, stockOf } from './topology.ts';

/** A request that most providers of any deployment satisfy. */
const plainRequests = classNames.slice(0, 3).map((name) => requestOf([groupOf('', { [name]: 1 })]));

/** The answer to any request of 1.39, which may be a refusal: names may have been deleted. */
type FoundOrRefused = { readonly allocation_requests: readonly string[] } | string;

const hasCandidates = (answer: FoundOrRefused): boolean =>
  typeof answer !== 'string' && answer.allocation_requests.length > 0;

function answerTo(fleet: Fleet, request: CandidateRequest): FoundOrRefused {
  try {
    const candidates = search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false });
    const answer: { allocation_requests: unknown[] } = JSON.parse(
      textOfChunks(candidatesJson(fleet, request, candidates, 1039)),
    );
    // A fleet that was changed lists the same in another order than a new one.
    return { ...answer, allocation_requests: answer.allocation_requests.map((each) => JSON.stringify(each)).sort() };
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/**
 * A request, and requests that differ from it in one respect: what is cached for one must not be used for the others.
 */
function alike(request: CandidateRequest): CandidateRequest[] {
  const but = (change: (group: RequestGroup) => Partial<RequestGroup>): CandidateRequest => ({
    ...request,
    groups: request.groups.map((group) => ({ ...group, ...change(group) })),
  });
  return [
    request,
    but(({ resources }) => ({ resources: new Map([...resources].map(([name, amount]) => [name, amount + 1])) })),
    but(({ traits }) => ({ traits: { ...traits, required: [] } })),
    but(({ traits }) => ({ traits: { ...traits, forbidden: [] } })),
    but(({ aggregates: { forbidden } }) => ({ aggregates: { required: [], forbidden } })),
    but(({ aggregates: { required } }) => ({ aggregates: { required, forbidden: [] } })),
    but(() => ({ inTree: undefined })),
  ];
}

test('the cache of a tree is up to date after any change, and right for any request', () => {
  let found = 0;
  // With the similar requests there are more groups than a tree caches.
  const anyRequests = fc.array(anyRequest, { maxLength: 2 });
  fc.assert(
    fc.property(
      anyTopology,
      anyRequests,
      fc.array(anyChange, { minLength: 1, maxLength: 8 }),
      (topology, more, list) => {
        const requests = [...plainRequests, ...more.flatMap(alike)];
        const answers = (fleet: Fleet) => requests.map((request) => answerTo(fleet, request));
        let rows = rowsOf(topology);
        const living = createFleet(rows);
        const { fleet } = living;
        answers(fleet);
        for (const change of list) {
          rows = changeFleet(living, rows, change);
          // Each request on a new fleet, which has cached nothing.
          const expected = requests.map((request) => answerTo(createFleet(rows).fleet, request));
          assert.deepEqual(answers(fleet), expected, change.kind);
          // The same again, from what was just cached.
          assert.deepEqual(answers(fleet), expected, change.kind);
          found += expected.slice(plainRequests.length).filter(hasCandidates).length;
        }
      },
    ),
    { numRuns: 300 },
  );
  assert.ok(found > 1000, `${found} answers`);
});

test('when an overlay is hidden a tree has its former cache, and none that was made while the overlay was shown', () => {
  const fleet = fleetOf([nodeAt(0, { stock: { VCPU: stockOf(8) } })]);
  const provider = fleet.byId.get(1) ?? assert.fail();
  const former = cacheOf(provider);
  const overlay = openOverlay(fleet);
  for (const amount of [1, 2]) {
    overlay.add([{ provider, classId: 1, amount }]);
    assert.notEqual(cacheOf(provider), former);
  }
  overlay.hide();
  assert.equal(provider.cache, former);
});
