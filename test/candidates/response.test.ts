import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { candidatesJson } from '../../src/api/candidates/answer.ts';
import { parseCandidateRequest } from '../../src/api/candidates/query.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { parseQuery } from '../../src/rest/query_string.ts';
import type { CandidateRequest } from '../../src/search/request.ts';
import { textOfChunks } from '../support/chunks.ts';
import { search } from '../support/search.ts';
import { naiveAnswer } from './naive_answer.ts';
import { anyRequest } from './random_request.ts';
import { anyTopology } from './random_topology.ts';
import { fleetOf, type Node, nodeAt, providerUuid, sharingTrait, stockOf, type Topology } from './topology.ts';

/** The versions at which the answer changes, and those just before. */
const versions = [1010, 1011, 1012, 1016, 1017, 1026, 1027, 1028, 1029, 1033, 1034, 1039];

const textAt = (fleet: Fleet, request: CandidateRequest, version: number): string => {
  const candidates = search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false });
  return textOfChunks(candidatesJson(fleet, request, candidates, version));
};

const host = (index: number, more: Partial<Omit<Node, 'stock'>>): Node =>
  nodeAt(index, { stock: { VCPU: stockOf(8) }, ...more });

/** Topologies in which some UUIDs have no dashes, as other programs may have written them to the database. */
const mixedTopology: fc.Arbitrary<Topology> = fc
  .tuple(anyTopology, fc.subarray([0, 1, 2, 3, 4, 5, 6]))
  .map(([topology, indexes]) =>
    topology.map((node, index) => (indexes.includes(index) ? { ...node, uuid: node.uuid.replaceAll('-', '') } : node)),
  );

/** No name or UUID in a topology has a space, so only spaces between JSON tokens are removed. */
const withoutSpaces = (text: string): string => text.replaceAll(/([,:]) /g, '$1');

suite('answers to candidates queries', () => {
  test('the text is equal to the text of the same answer built as objects, at each version', () => {
    let candidates = 0;
    fc.assert(
      fc.property(mixedTopology, anyRequest, fc.constantFrom(...versions), (topology, request, version) => {
        const fleet = fleetOf(topology);
        const all = [...search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false })];
        candidates += all.length;
        const expected = JSON.stringify(naiveAnswer(topology, request, all, version));
        assert.equal(withoutSpaces(textAt(fleet, request, version)), expected);
        // Once more, from what was cached the first time.
        assert.equal(withoutSpaces(textAt(fleet, request, version)), expected);
      }),
      { numRuns: 1500 },
    );
    assert.ok(candidates > 1500, `only ${candidates} candidates`);
  });

  test('the text is right if candidates have more patterns than are cached', () => {
    // Eight groups on four devices or fewer: 2,795 patterns.
    const topology = [0, 1, 2, 3].map((index) => host(index, { parent: index === 0 ? undefined : 0 }));
    const groups = Array.from({ length: 8 }, (_, index) => `resources_${index}=VCPU:1`);
    const request = parseCandidateRequest(parseQuery(`${groups.join('&')}&group_policy=none`), 1039);
    const fleet = fleetOf(topology);
    const all = search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false });
    const some = [...all].filter((_, index) => index % 5 === 0);
    const text = textOfChunks(candidatesJson(fleet, request, some, 1039));
    assert.ok(withoutSpaces(text) === JSON.stringify(naiveAnswer(topology, request, some, 1039)));
  });

  test('a sharing provider of which nothing is taken has no summary', () => {
    const aggregates = [providerUuid(9)];
    const topology = [host(0, { aggregates }), host(1, { aggregates, traits: [sharingTrait, 'CUSTOM_RARE'] })];
    const query = 'resources_1=VCPU:1&required_1=!CUSTOM_RARE&required_2=CUSTOM_RARE&same_subtree=_2&group_policy=none';
    const text = textAt(fleetOf(topology), parseCandidateRequest(parseQuery(query), 1039), 1039);
    const { allocation_requests: requests, provider_summaries: summaries } = JSON.parse(text);
    assert.deepEqual(requests[0].mappings, { _1: [providerUuid(0)], _2: [providerUuid(1)] });
    assert.deepEqual(Object.keys(summaries), [providerUuid(0)]);
  });

  test('an answer without candidates has both keys', () => {
    const fleet = fleetOf([]);
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
