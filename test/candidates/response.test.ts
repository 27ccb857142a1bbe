import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { CandidateRequest } from '../../src/candidates/request.ts';
import { candidatesJson } from '../../src/candidates/response.ts';
import { search } from '../../src/candidates/search.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { createFleet } from '../fleet/made_up_fleet.ts';
import { naiveAnswer } from './naive_answer.ts';
import { anyRequest } from './random_request.ts';
import { anyTopology } from './random_topology.ts';
import { rowsOf } from './topology.ts';

/** The versions at which the answer changes, and those just before. */
const versions = [10, 11, 12, 16, 17, 26, 27, 28, 29, 33, 34, 39];

const textAt = (fleet: Fleet, request: CandidateRequest, version: number): string => {
  const candidates = search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false });
  return Buffer.concat([...candidatesJson(fleet, request, candidates, version)]).toString();
};

/** No name or UUID in a topology has a space: what is left is the text itself. */
const withoutSpaces = (text: string): string => text.replaceAll(/([,:]) /g, '$1');

suite('answers to candidates queries', () => {
  test('the text is that of the same answer built as objects, at each version', () => {
    let candidates = 0;
    fc.assert(
      fc.property(anyTopology, anyRequest, fc.constantFrom(...versions), (topology, request, version) => {
        const { fleet } = createFleet(rowsOf(topology));
        const all = [...search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false })];
        candidates += all.length;
        const expected = JSON.stringify(naiveAnswer(topology, request, all, version));
        assert.equal(withoutSpaces(textAt(fleet, request, version)), expected);
        // Once more: what was kept of the first time is the same.
        assert.equal(withoutSpaces(textAt(fleet, request, version)), expected);
      }),
      { numRuns: 1500 },
    );
    assert.ok(candidates > 1500, `only ${candidates} candidates`);
  });

  test('an answer without candidates has both keys', () => {
    const { fleet } = createFleet(rowsOf([]));
    const [request] = fc.sample(anyRequest, 1);
    assert.ok(request);
    for (const version of versions) {
      assert.deepEqual(JSON.parse(textAt(fleet, request, version)), {
        allocation_requests: [],
        provider_summaries: {},
      });
    }
  });
});
