import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { heldTrees } from '../../src/search/anchors.ts';
import type { CandidateRequest } from '../../src/search/request.ts';
import type { SearchOptions } from '../../src/search/search.ts';
import { search } from '../support/search.ts';
import { candidateKey } from './candidate_key.ts';
import { crowdedRequest, crowdedTree } from './crowded.ts';
import { allCandidates } from './oracle.ts';
import { groupOf, requestOf } from './plain_request.ts';
import { anyRequest } from './random_request.ts';
import { anyTopology } from './random_topology.ts';
import {
  aggregates,
  fleetOf,
  type Node,
  nodeAt,
  providerUuid,
  sharingTrait,
  stockOf,
  type Topology,
} from './topology.ts';

const depthFirst: SearchOptions = { strategy: 'depth-first', randomize: false, limited: false };
const allOptions: readonly SearchOptions[] = [
  depthFirst,
  { strategy: 'breadth-first', randomize: false, limited: false },
  { strategy: 'depth-first', randomize: true, limited: false },
  { strategy: 'breadth-first', randomize: true, limited: false },
  { strategy: 'depth-first', randomize: true, limited: true },
];

const found = (fleet: Fleet, request: CandidateRequest, options = depthFirst): string[] =>
  [...search(fleet, request, options)].map((candidate) => candidateKey(fleet, candidate));

/** Roots without inventories: with many of them, the search visits only the trees that have what it needs. */
const withBystanders = (topology: Topology): Topology => [
  ...topology,
  ...Array.from({ length: 20 }, (_, index) => nodeAt(100 + index)),
];

suite('search for candidates', () => {
  test('finds exactly the candidates that are found by trying every assignment', (t) => {
    const counts = new Map<string, number>();
    const count = (what: string, isSo: boolean) => counts.set(what, (counts.get(what) ?? 0) + Number(isSo));
    const numRuns = 4000;
    fc.assert(
      fc.property(anyTopology, anyRequest, (topology, request) => {
        const expected = [...allCandidates(topology, request)].sort();
        assert.deepEqual(found(fleetOf(topology), request).sort(), expected);
        assert.deepEqual(found(fleetOf(withBystanders(topology)), request).sort(), expected);

        if (expected.length === 0) return;
        const { groups } = request;
        const classes = groups.flatMap(({ resources }) => [...resources.keys()]);
        const rootOf = (uuid: string): Node | undefined => {
          const node = topology.find((each) => each.uuid === uuid);
          return node?.parent === undefined ? node : rootOf(topology[node.parent]?.uuid ?? '');
        };
        const used = expected.map((key) => new Set([...key.matchAll(/a{8}-[-0-9]{27}/g)].map(([uuid]) => uuid)));
        const trees = used.map((uuids) => new Set([...uuids].map(rootOf)).size);
        count('something', true);
        count('several candidates', expected.length > 3);
        count(
          'several providers of a tree',
          used.some((uuids, index) => uuids.size > (trees[index] ?? 0)),
        );
        count(
          'a provider that shares',
          trees.some((size) => size > 1),
        );
        count('several groups', groups.length > 2);
        count('a class of several groups', new Set(classes).size < classes.length);
        count(
          'any of several traits',
          groups.some(({ traits }) => traits.required.some((anyOf) => anyOf.length > 1)),
        );
        count(
          'forbidden traits',
          groups.some(({ traits }) => traits.forbidden.length > 0),
        );
        count(
          'aggregates',
          groups.some(({ aggregates: { required } }) => required.length > 0),
        );
        count(
          'forbidden aggregates',
          groups.some(({ aggregates: { forbidden } }) => forbidden.length > 0),
        );
        count(
          'a tree',
          groups.some(({ inTree }) => inTree !== undefined),
        );
        count(
          'a group without resources',
          groups.some(({ resources }) => resources.size === 0),
        );
        count(
          'same_subtree of several',
          request.sameSubtrees.some(({ size }) => size > 1),
        );
        count('isolation of several', request.isolate && groups.filter(({ suffix }) => suffix !== '').length > 1);
        count('traits of the root', request.rootTraits.required.length + request.rootTraits.forbidden.length > 0);
        count('trees unseen', !request.nested && topology.some(({ parent }) => parent !== undefined));
      }),
      { numRuns },
    );
    t.diagnostic([...counts].map(([what, times]) => `${what} ${times}`).join(', '));
    assert.ok((counts.get('something') ?? 0) > numRuns / 4, 'few requests found anything');
    for (const [what, times] of counts) assert.ok(times > numRuns / 1000, `${what}: only ${times} of ${numRuns} times`);
  });

  test('finds exactly the candidates that fit if nearly every combination fails', (t) => {
    let [candidates, requests] = [0, 0];
    fc.assert(
      fc.property(crowdedTree, crowdedRequest, (topology, request) => {
        const expected = [...allCandidates(topology, request)].sort();
        assert.deepEqual(found(fleetOf(topology), request).sort(), expected);
        candidates += expected.length;
        requests += Number(expected.length > 0);
      }),
      { numRuns: 1000 },
    );
    t.diagnostic(`${candidates} candidates of ${requests} requests`);
    assert.ok(requests > 150 && candidates > 10 * requests, 'not crowded, or too much so');
  });

  test('finds the same in every order, each candidate once', () => {
    fc.assert(
      fc.property(anyTopology, anyRequest, fc.constantFrom(...allOptions), (topology, request, options) => {
        const fleet = fleetOf(topology);
        assert.deepEqual(found(fleet, request, options).sort(), found(fleet, request).sort());
      }),
      { numRuns: 1000 },
    );
  });

  test('with a limit, finds that number of the existing candidates', () => {
    const limit = fc.integer({ min: 1, max: 5 });
    fc.assert(
      fc.property(
        anyTopology,
        anyRequest,
        fc.constantFrom(...allOptions),
        limit,
        (topology, request, options, limit) => {
          const fleet = fleetOf(topology);
          const all = allCandidates(topology, request);
          const few = Iterator.from(search(fleet, request, options)).take(limit);
          const keys = [...few].map((candidate) => candidateKey(fleet, candidate));
          assert.equal(new Set(keys).size, Math.min(limit, all.size));
          assert.deepEqual(
            keys.filter((key) => !all.has(key)),
            [],
          );
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('depth-first finishes one tree before the next; breadth-first takes one candidate of each tree in turn', () => {
    const fleet = fleetOf(threeTrees);
    const roots = (options: SearchOptions) =>
      [...search(fleet, oneFunction, options)].map((candidate) => candidate[0]?.providers[0]?.root.uuid);
    const [a, b, c] = [0, 1, 2].map(providerUuid);
    assert.deepEqual(roots(depthFirst), [a, a, b, b, c, c]);
    assert.deepEqual(roots({ strategy: 'breadth-first', randomize: false, limited: false }), [a, b, c, a, b, c]);
  });

  test('a random sample differs each time, and each tree comes', () => {
    const fleet = fleetOf(Array.from({ length: 40 }, (_, index) => tree(index, undefined)));
    const seen = new Set<string>();
    const samples = new Set<string>();
    for (let time = 0; time < 300; time++) {
      const sample = Iterator.from(
        search(fleet, oneFunction, { strategy: 'depth-first', randomize: true, limited: true }),
      ).take(5);
      const uuids = [...sample].map((candidate) => candidate[0]?.providers[0]?.uuid ?? '');
      assert.equal(new Set(uuids).size, 5);
      for (const uuid of uuids) seen.add(uuid);
      samples.add(uuids.join());
    }
    // The probability that one of 40 trees is in none of 300 samples of 5 is 10^-15.
    assert.equal(seen.size, 40);
    assert.ok(samples.size > 100, `only ${samples.size} different samples`);
  });

  test('all candidates in random order have each host once, for any number of hosts', () => {
    for (const count of [1, 15, 16, 17, 40]) {
      const fleet = fleetOf(Array.from({ length: count }, (_, index) => tree(index, undefined)));
      const all = found(fleet, oneFunction, { strategy: 'depth-first', randomize: true, limited: true });
      assert.deepEqual(all.sort(), found(fleet, oneFunction).sort());
      assert.equal(all.length, count);
    }
  });

  test('a random sample shows all trees before it shows one tree twice, and any of their providers', () => {
    const fleet = fleetOf(threeTrees);
    const seen = new Set<string>();
    for (let time = 0; time < 200; time++) {
      const sample = [
        ...Iterator.from(search(fleet, oneFunction, { strategy: 'depth-first', randomize: true, limited: true })).take(
          3,
        ),
      ];
      assert.equal(new Set(sample.map((candidate) => candidate[0]?.providers[0]?.root)).size, 3);
      for (const candidate of sample) seen.add(candidate[0]?.providers[0]?.uuid ?? '');
    }
    assert.equal(seen.size, 6);
  });

  test('the tree that a group without resources names is ignored', () => {
    const hosts = Array.from({ length: 8 }, (_, index) => ({
      ...tree(index, undefined),
      traits: ['CUSTOM_FAST'] as const,
    }));
    const fast = groupOf(
      '_FAST',
      {},
      { traits: { required: [['CUSTOM_FAST']], forbidden: [] }, inTree: [providerUuid(3)] },
    );
    const request = requestOf([groupOf('1', { SRIOV_NET_VF: 1 }), fast], { sameSubtrees: [new Set(['1', '_FAST'])] });
    for (const options of allOptions) assert.equal(found(fleetOf(hosts), request, options).length, 8);
  });

  test('the same choice of sharing providers from several trees is one candidate', () => {
    const shared = { ...tree(0, undefined), traits: [sharingTrait], aggregates: [aggregates[0]] } as const;
    const guests = [1, 2].map((index) => nodeAt(index, { aggregates: [aggregates[0]] }));
    const fleet = fleetOf([shared, ...guests]);
    for (const options of allOptions) assert.equal(found(fleet, oneFunction, options).length, 1);
  });
});

test('the trees of a consumer are those of its hosts; of one that holds something of pools only, those of the pools', () => {
  const pools = [0, 1].map((index) => nodeAt(index, { traits: [sharingTrait], aggregates: [aggregates[0]] }));
  const fleet = fleetOf([...pools, nodeAt(2), nodeAt(3, { parent: 2 })]);
  const treesOf = (...ids: readonly number[]) =>
    Array.from(
      heldTrees(
        fleet,
        ids.flatMap((id) => fleet.byId.get(id) ?? []),
      ),
      ({ id }) => id,
    );
  assert.deepEqual(treesOf(1), [1]);
  assert.deepEqual(treesOf(1, 2), [1, 2]);
  assert.deepEqual(treesOf(1, 4, 2), [3]);
});

const oneFunction = requestOf([groupOf('', { SRIOV_NET_VF: 1 })]);

const tree = (index: number, parent: number | undefined): Node =>
  nodeAt(index, { parent, stock: { SRIOV_NET_VF: stockOf(8) } });

/** Three roots without inventories, each with two children that have functions. */
const threeTrees: Topology = [
  ...[0, 1, 2].map((index) => nodeAt(index)),
  ...[3, 4, 5, 6, 7, 8].map((index) => tree(index, index % 3)),
];
