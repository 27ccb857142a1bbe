import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const uuidFrom = (digits: string): string => `${digits}${randomUUID().slice(2)}`;
const [host, other, rack, empty] = [uuidFrom('a1'), uuidFrom('b2'), uuidFrom('c3'), uuidFrom('d4')];

/** Other texts for the same UUID, as a part of a URL. */
const spellings = [
  (uuid: string) => uuid.toUpperCase(),
  (uuid: string) => uuid.replaceAll('-', ''),
  (uuid: string) => encodeURIComponent(`{${uuid}}`),
  (uuid: string) => `urn:uuid:${uuid}`,
];

test('version 2 finds in_tree, member_of and uuid of a query in any spelling, and 1.39 as it is stored', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.9');
    for (const uuid of [host, other]) await makeProvider(send, uuid, { VCPU: { total: 100 } });
    const aggregates = { aggregates: [rack], resource_provider_generation: 1 };
    accepted(await send('PUT', `/resource_providers/${host}/aggregates`, aggregates));

    const found = async (path: string, version?: string): Promise<readonly string[]> => {
      const { json } = accepted(await send('GET', path, undefined, version));
      const uuids = JSON.stringify(json).match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? [];
      return [host, other].filter((uuid) => new Set<string>(uuids).has(uuid));
    };

    for (const spelt of spellings) {
      for (const [condition, expected] of [
        [`in_tree=${spelt(host)}`, host],
        [`member_of=${spelt(rack)}`, host],
        [`member_of=in:${spelt(rack)}`, host],
        [`member_of=!${spelt(rack)}`, other],
        [`member_of=!in:${spelt(rack)},${spelt(empty)}`, other],
      ] as const) {
        assert.deepEqual(await found(`/resource_providers?${condition}`), [expected], condition);
        assert.deepEqual(await found(`/provider_summaries?${condition}`), [expected], condition);
        const query = `resources=VCPU:1&${condition}`;
        assert.deepEqual(await found(`/allocation_candidates?${query}`), [expected], condition);
        assert.deepEqual(await found(`/allocation_candidates/count?${query}`), [expected], condition);
        const { json: explanation } = accepted(await send('GET', `/allocation_candidates/explanation?${query}`));
        assert.equal(at(explanation, 'fitting'), 1, condition);
        // The condition is shown as the client wrote it.
        assert.equal(at(explanation, 'conditions', 1, 'value'), decodeURIComponent(condition.replace(/^\w+=/, '')));
        const { allocations: _, ...whose } = newClaim({});
        const claim = { ...whose, consumer_type: 'INSTANCE', candidates: query };
        const placed = accepted(await send('PUT', `/allocations/${randomUUID()}`, claim));
        assert.deepEqual(Object.keys(Object(at(placed.json, 'allocations'))), [expected], condition);
      }
      assert.deepEqual(await found(`/resource_providers?uuid=${spelt(host)}`), [host]);
      for (const [named, expected] of [
        [host, [host]],
        [other, []],
      ] as const) {
        const both = `uuid=${spelt(host)}&name=${named}`;
        assert.deepEqual(await found(`/resource_providers?${both}`), expected, both);
      }
    }

    assert.deepEqual(await found(`/resource_providers?uuid=${host.toUpperCase()}`, 'placement 1.39'), []);
    const capitals = [
      [`in_tree=${host.toUpperCase()}`, []],
      [`member_of=${rack.toUpperCase()}`, []],
      [`member_of=!in:${rack.toUpperCase()}`, [host, other]],
    ] as const;
    for (const [condition, expected] of capitals) {
      assert.deepEqual(await found(`/resource_providers?${condition}`, 'placement 1.39'), expected);
      assert.deepEqual(await found(`/allocation_candidates?resources=VCPU:1&${condition}`, 'placement 1.39'), expected);
    }
    const without = await send(
      'GET',
      `/resource_providers?uuid=${host.replaceAll('-', '')}`,
      undefined,
      'placement 1.39',
    );
    assert.equal(without.status, 400);
  });
});
