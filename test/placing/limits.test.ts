import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { ClaimRefused } from '../../src/claims/claim.ts';
import { onCertainFleet, placeConsumers } from '../../src/claims/placing.ts';
import { allTrees } from '../../src/search/anchors.ts';
import { findPlace } from '../../src/search/place.ts';
import { groupOf, requestOf } from '../candidates/plain_request.ts';
import { fleetOf, nodeAt, stockOf } from '../candidates/topology.ts';
import { anyEngine } from '../support/engines.ts';
import { inFolder } from '../support/in_folder.ts';
import { accepted, at, makeProvider, newClaim } from '../support/requests.ts';
import { errorOf, placed, withHosts } from './placed.ts';

test('a query whose search takes too much work is a 400, and does not hold up others', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    // Twelve devices are left with one of four, which is of no use, and the other eight have 16 pairs for 17 groups.
    for (let device = 0; device < 20; device++) {
      await makeProvider(send, randomUUID(), { SRIOV_NET_VF: { total: 4 } }, { parent_provider_uuid: host });
    }
    const groups = Array.from({ length: 29 }, (_, index) => `resources${index}=SRIOV_NET_VF:${index < 12 ? 3 : 2}`);
    const wide = placed(`${groups.join('&')}&group_policy=none`);
    const consumer = randomUUID();
    const [answer, gang, other] = await Promise.all([
      send('PUT', `/allocations/${consumer}`, wide),
      send('POST', '/allocations', { [randomUUID()]: placed('resources=VCPU:1'), [consumer]: wide }),
      send('PUT', `/allocations/${randomUUID()}`, placed('resources=VCPU:1')),
    ]);
    accepted(other);
    for (const refused of [answer, gang]) {
      assert.equal(refused.status, 400, refused.text);
      assert.equal(errorOf(refused).code, 'placement.query_too_wide');
      assert.ok(errorOf(refused).detail.includes(consumer));
    }
    assert.equal(Object(at((await send('GET', '/consumers')).json, 'consumers')).length, 1);
    // The first one takes the only tree, and wants to be alone there.
    const first = randomUUID();
    const alone = placed(`resources=VCPU:1&apart_from=${consumer}`);
    const unexplained = errorOf(await send('POST', '/allocations', { [first]: alone, [consumer]: wide }));
    assert.equal(unexplained.code, 'placement.no_candidates');
    assert.match(unexplained.detail, /no tree meets all its conditions; to find the one .* takes too much work\./);
  });
});

test('claims by query need the rule of GET /allocation_candidates as well, and other claims do not', async () => {
  await inFolder(async (folder) => {
    const policyFile = path.join(folder, 'policy.yaml');
    await writeFile(policyFile, '"placement:allocation_candidates:list": "!"\n');
    const use: Parameters<typeof withHosts>[2] = async (send, [host = '']) => {
      const byQuery = placed('resources=VCPU:1');
      const refused = [
        await send('PUT', `/allocations/${randomUUID()}`, byQuery),
        await send('PUT', `/allocations/${randomUUID()}`, { ...byQuery, dry_run: true }),
        await send('POST', '/allocations', { [randomUUID()]: byQuery }),
      ];
      for (const answer of refused) {
        assert.equal(answer.status, 403, answer.text);
        assert.match(errorOf(answer).detail, /placement:allocation_candidates:list/);
      }
      const plain = newClaim({ [host]: { VCPU: 1 } });
      accepted(await send('PUT', `/allocations/${randomUUID()}`, plain));
      accepted(await send('POST', '/allocations', { [randomUUID()]: plain }));
    };
    await withHosts(anyEngine, 1, use, { osloPolicy: { policyFile } });
  });
});

test('the searches of a claim have a budget together, which many that are nearly too wide use up', () => {
  // Each search passes 95 trees of 100 providers, none of which a group may take, before it comes to the last one.
  const nodes = Array.from({ length: 96 * 100 }, (_, index) => {
    const tree = Math.floor(index / 100);
    const isRoot = index % 100 === 0;
    const amount = tree === 95 ? 1000 : 10;
    return nodeAt(index, {
      stock: { VCPU: stockOf(amount) },
      traits: tree === 95 ? [] : ['CUSTOM_RARE'],
      ...(isRoot ? {} : { parent: tree * 100 }),
    });
  });
  const fleet = fleetOf(nodes);
  const traits = { required: [], forbidden: ['CUSTOM_RARE'] };
  const groups = Array.from({ length: 8 }, (_, index) => groupOf(`${index}`, { VCPU: 1 }, { traits }));
  const request = requestOf(groups, { order: [{ kind: 'free', className: 'VCPU', mostFirst: false }] });
  const place = (count: number) => {
    let steps = 0;
    const consumers = Array.from({ length: count }, (_, number) => ({
      uuid: `consumer ${number}`,
      knownGeneration: null,
      projectId: 'p',
      userId: 'u',
      consumerType: undefined,
      allocations: new Map(),
      queries: [{ request, conditions: [] }],
    }));
    const claim = { consumers, inventories: [], placing: [...consumers.keys()] };
    const onSteps = (taken: number) => {
      steps = taken;
    };
    try {
      return { placed: placeConsumers(fleet, claim, new Map(), { ...onCertainFleet, onSteps }).mappings.size, steps };
    } catch (error) {
      assert.ok(error instanceof ClaimRefused);
      return { refused: error.reason, message: error.message, steps };
    }
  };
  const { placed, steps } = place(1);
  assert.ok(placed === 1 && steps > 360_000, `${steps} steps for one`);
  assert.equal(place(2).placed, 2);
  const { refused, message, steps: all } = place(3);
  assert.equal(refused, 'query too wide');
  assert.match(message ?? '', /consumer 2 was stopped/);
  assert.ok(all < 1_100_000, `${all} looks for all`);
});

test('the steps for the list of an order are counted once, and do not come from the budget of the search', () => {
  const fleet = fleetOf(Array.from({ length: 1000 }, (_, index) => nodeAt(index, { stock: { VCPU: stockOf(4) } })));
  const request = requestOf([groupOf('', { VCPU: 1 })], {
    order: [{ kind: 'free', className: 'VCPU', mostFirst: false }],
  });
  const [first, next] = [1, 2].map(() => {
    const work = { steps: 1000, forLists: 0 };
    assert.equal(typeof findPlace(fleet, request, { allowed: allTrees, work }), 'object');
    return work;
  });
  assert.ok(first !== undefined && first.forLists >= 1000 && next?.forLists === 0);
  assert.equal(first.steps, next.steps);
});
