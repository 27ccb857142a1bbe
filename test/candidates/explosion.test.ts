import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { candidatesJson } from '../../src/api/candidates/answer.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { openTurns } from '../../src/request/turns.ts';
import { jsonBody } from '../../src/rest/json_body.ts';
import type { CandidateRequest } from '../../src/search/request.ts';
import { holdNothing, readChunks } from '../support/chunks.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, requestsTo } from '../support/requests.ts';
import { search } from '../support/search.ts';
import { withTestService } from '../support/services.ts';
import { groupOf, requestOf } from './plain_request.ts';
import { aggregates, fleetOf, type Node, nodeAt, providerUuid, stockOf, type Topology } from './topology.ts';

/*
 * Searches that would take very long if all combinations were tried. The work is counted as reads of inventories and
 * parents: a search cannot judge a provider or a subtree without these, and unlike the time their number is the same on
 * every machine.
 */

/** Roots with children that have that many functions each; a child has the traits at its index. */
const hosts = (count: number, children: number, functions: number, traits: readonly Node['traits'][] = []): Topology =>
  Array.from({ length: count }, (_, host): Node[] => {
    const first = host * (children + 1);
    const stock = { SRIOV_NET_VF: stockOf(functions) };
    const devices = Array.from({ length: children }, (_, child) =>
      nodeAt(first + 1 + child, { parent: first, stock, traits: traits[child] ?? [] }),
    );
    return [nodeAt(first), ...devices];
  }).flat();

function counted(topology: Topology): { readonly fleet: Fleet; readonly steps: () => number } {
  const fleet = fleetOf(topology);
  let steps = 0;
  for (const provider of fleet.byId.values()) {
    for (const name of ['inventories', 'parent'] as const) {
      const value = provider[name];
      Object.defineProperty(provider, name, {
        get: () => {
          steps++;
          return value;
        },
      });
    }
  }
  return { fleet, steps: () => steps };
}

/** That many granular groups for one function each. */
const functions = (count: number, more: Partial<CandidateRequest> = {}): CandidateRequest => {
  const groups = Array.from({ length: count }, (_, index) => groupOf(`${index + 1}`, { SRIOV_NET_VF: 1 }));
  return requestOf(groups, more);
};

const oneOfEach = { VCPU: 1, MEMORY_MB: 1, DISK_GB: 1, SRIOV_NET_VF: 1 };
const rich = { VCPU: stockOf(8), MEMORY_MB: stockOf(8), DISK_GB: stockOf(8), SRIOV_NET_VF: stockOf(8) };

const taken = (fleet: Fleet, request: CandidateRequest, limit: number): number =>
  Iterator.from(search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false }))
    .take(limit)
    .reduce((count) => count + 1, 0);

suite('explosions of combinations', () => {
  for (const isolate of [false, true]) {
    test(`eight groups for eight devices, the first thousand, isolate ${isolate}`, () => {
      const { fleet, steps } = counted(hosts(1, 8, 1));
      assert.equal(taken(fleet, functions(8, { isolate }), 1000), 1000);
      assert.ok(steps() < 60_000, `${steps()} steps for 1000 candidates`);
    });

    test(`eleven groups for ten devices, on each of a hundred hosts, isolate ${isolate}`, () => {
      const { fleet, steps } = counted(hosts(100, 10, 1));
      assert.equal(taken(fleet, functions(11, { isolate }), 1), 0);
      assert.ok(steps() < 100 * 1000, `${steps()} steps to refuse`);
    });

    test(`eight groups, of which the last two want the same device, isolate ${isolate}`, () => {
      const { fleet, steps } = counted(hosts(1, 10, 1, [['CUSTOM_RARE']]));
      const request = functions(8, { isolate });
      const rare = { required: [['CUSTOM_RARE']], forbidden: [] };
      const groups = request.groups.map((group, index) => (index < 6 ? group : { ...group, traits: rare }));
      assert.equal(taken(fleet, { ...request, groups }, 1), 0);
      assert.ok(steps() < 1000, `${steps()} steps to refuse`);
    });
  }

  test('two hundred groups for as many devices and a few more', () => {
    const { fleet, steps } = counted(hosts(1, 210, 1));
    assert.equal(taken(fleet, functions(200), 1), 1);
    assert.ok(steps() < 1_000_000, `${steps()} steps for one candidate`);
  });

  test('sixty groups within a subtree, on a hundred devices of which none is below another', () => {
    const { fleet, steps } = counted(hosts(1, 100, 1));
    const { groups } = functions(60);
    const sameSubtrees = [new Set(groups.map(({ suffix }) => suffix))];
    assert.equal(taken(fleet, functions(0, { groups, sameSubtrees }), 1), 0);
    assert.ok(steps() < 200_000, `${steps()} steps to refuse`);
  });

  test('a search for different amounts that do not fit, which no check notices, ends with an error', () => {
    // Twelve devices are left with one of four, which no group can use, and the other eight have 16 pairs for 17
    // groups.
    const fleet = fleetOf(hosts(1, 20, 4));
    const groups = functions(29).groups.map((group, index) => ({
      ...group,
      resources: new Map([['SRIOV_NET_VF', index < 12 ? 3 : 2]]),
    }));
    assert.throws(() => taken(fleet, functions(0, { groups }), 1), { status: 400, message: /29 request groups/ });
  });

  test('ten groups for ten devices, where the first choices of groups are devices that other groups need', () => {
    const traits: Node['traits'][] = Array.from({ length: 10 }, (_, index) => (index < 5 ? ['CUSTOM_FAST'] : []));
    const { fleet, steps } = counted(hosts(1, 10, 1, traits));
    const request = functions(10);
    const fast = { required: [['CUSTOM_FAST']], forbidden: [] };
    const groups = request.groups.map((group, index) => (index < 5 ? group : { ...group, traits: fast }));
    assert.equal(taken(fleet, { ...request, groups }, 1000), 1000);
    assert.ok(steps() < 300_000, `${steps()} steps for 1000 candidates`);
  });

  test('a pair within one of ten subtrees, between whose choices seven others take devices', () => {
    const cells = Array.from({ length: 10 }, (_, index): Node[] => {
      const cell = nodeAt(1 + index, { parent: 0, stock: { VCPU: stockOf(1) } });
      const device = nodeAt(11 + index, { parent: 1 + index, stock: { SRIOV_NET_VF: stockOf(1) } });
      return [cell, device];
    });
    const topology = [
      nodeAt(0),
      ...cells.flatMap(([cell]) => cell ?? []),
      ...cells.flatMap(([, device]) => device ?? []),
    ];
    const { fleet, steps } = counted(topology);
    const groups = [groupOf('_CPU', { VCPU: 1 }), ...functions(8).groups];
    assert.equal(taken(fleet, functions(0, { groups, sameSubtrees: [new Set(['_CPU', '8'])] }), 1000), 1000);
    assert.ok(steps() < 200_000, `${steps()} steps for 1000 candidates`);
  });

  test('before 1.29 a tree is one provider: eight groups on eight devices have eight candidates', () => {
    const { fleet, steps } = counted(hosts(1, 8, 8));
    assert.equal(taken(fleet, functions(8, { nested: false }), 1000), 8);
    assert.ok(steps() < 20_000, `${steps()} steps for 8 candidates`);
  });

  test('a required trait that no provider of the classes has ends the search for the group without suffix', () => {
    const [root, ...devices] = hosts(1, 60, 1);
    assert.ok(root !== undefined);
    const topology = [
      { ...root, traits: ['CUSTOM_FAST'] as const },
      ...devices.map((node) => ({ ...node, stock: rich })),
    ];
    const fleet = fleetOf(topology);
    // Of each combination, of which there are 13 million, the traits of all providers were read.
    let reads = 0;
    for (const provider of fleet.byId.values()) {
      const { traitIds } = provider;
      Object.defineProperty(provider, 'traitIds', {
        get: () => {
          reads++;
          return traitIds;
        },
      });
    }
    const plain = groupOf('', oneOfEach, { traits: { required: [['CUSTOM_FAST']], forbidden: [] } });
    assert.equal(taken(fleet, functions(0, { groups: [plain] }), 1), 0);
    assert.ok(reads < 2000, `${reads} looks at traits`);
  });

  test('ten candidates of two thousand hosts take fewer than 200 steps', () => {
    const { fleet, steps } = counted(hosts(2000, 2, 4));
    assert.equal(taken(fleet, functions(2), 10), 10);
    assert.ok(steps() < 200, `${steps()} steps for 10 candidates`);
  });

  test('the choices of the group without suffix are not listed', () => {
    const { fleet, steps } = counted(hosts(1, 60, 1).map((node) => ({ ...node, stock: rich })));
    const groups = [...functions(1).groups, groupOf('', oneOfEach)];
    assert.equal(taken(fleet, functions(1, { groups }), 10), 10);
    assert.ok(steps() < 2000, `${steps()} steps for 10 of 800 million candidates`);
  });

  test('a million candidates are sent one after the other, and are not all in memory', async (t) => {
    v8.setFlagsFromString('--expose-gc');
    const collect: () => void = vm.runInNewContext('gc');
    const fleet = fleetOf(hosts(1, 10, 6));
    const request = functions(6);
    collect();
    const before = process.memoryUsage().heapUsed;
    const candidates = search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false });
    const body = await jsonBody(candidatesJson(fleet, request, candidates, 1012), holdNothing, openTurns());
    assert.ok(!(body instanceof Uint8Array));
    let [bytes, chunks, most] = [0, 0, 0];
    for await (const chunk of readChunks(body)) {
      bytes += chunk.length;
      if (++chunks % 100 !== 0) continue;
      collect();
      most = Math.max(most, process.memoryUsage().heapUsed - before);
    }
    t.diagnostic(`${Math.round(bytes / 1e6)} MB of text, at most ${(most / 1e6).toFixed(1)} MB of heap`);
    assert.ok(bytes > 200e6, `${bytes} bytes`);
    // The heap may be smaller than before: it only matters that it was measured.
    assert.ok(chunks >= 100 && most < 40e6, `${most} bytes of heap in ${chunks} chunks`);
  });

  test('max_allocation_candidates limits a query without limit', async () => {
    await withTestService(anyEngine, { placement: { maxAllocationCandidates: 3 } }, async (service) => {
      const send = requestsTo(service);
      for (const index of [1, 2, 3, 4, 5]) await makeProvider(send, providerUuid(index), { VCPU: { total: 1 } });
      const counts = ['', '&limit=2', '&limit=4'].map(async (limit) => {
        const { json } = await send('GET', `/allocation_candidates?resources=VCPU:1${limit}`);
        const count = at(json, 'allocation_requests', 'length');
        assert.equal(Object.keys(Object(at(json, 'provider_summaries'))).length, count);
        return count;
      });
      assert.deepEqual(await Promise.all(counts), [3, 2, 3]);
    });
    await withTestService(anyEngine, { placement: { maxAllocationCandidates: 0 } }, async (service) => {
      const send = requestsTo(service);
      await makeProvider(send, providerUuid(1), { VCPU: { total: 1 } });
      const { json } = await send('GET', '/allocation_candidates?resources=VCPU:1');
      assert.deepEqual(json, { allocation_requests: [], provider_summaries: {} });
    });
  });

  test('a question is asked about a query of at most 200 conditions', async () => {
    await withTestService(anyEngine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.3');
      const ask = (members: number) =>
        send('GET', `/allocation_candidates/count?resources=VCPU:1${`&member_of=${aggregates[0]}`.repeat(members)}`);
      accepted(await ask(199));
      const { status, text } = await ask(200);
      assert.equal(status, 400);
      assert.match(text, /a query may have 200 conditions .* Got: 201/);
    });
  });
});
