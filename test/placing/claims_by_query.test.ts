import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { engines } from '../engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../requests.ts';
import { withTestService } from '../services.ts';
import { placed } from './placed.ts';

/** Calls back with requests at 1.43 to a service with so many hosts, each with 8 VCPU and 1000 MB. */
async function withHosts(
  engine: (typeof engines)[number],
  count: number,
  use: (send: Send, hosts: readonly string[]) => Promise<void>,
): Promise<void> {
  await withTestService(engine, {}, async (service) => {
    const send = requestsTo(service, 'placement 1.43');
    const hosts = Array.from({ length: count }, () => randomUUID());
    for (const host of hosts) await makeProvider(send, host, { VCPU: { total: 8 }, MEMORY_MB: { total: 1000 } });
    await use(send, hosts);
  });
}

for (const engine of engines) {
  test(`a consumer is placed by a query, and the answer is what GET shows, on ${engine}`, async () => {
    await withHosts(engine, 3, async (send, hosts) => {
      const consumer = randomUUID();
      const answer = accepted(await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:2,MEMORY_MB:100')));
      assert.equal(answer.status, 200);
      const host = Object.keys(Object(at(answer.json, 'allocations')))[0] ?? '';
      assert.ok(hosts.includes(host));
      const shown = await send('GET', `/allocations/${consumer}`);
      assert.deepEqual(answer.json, { ...Object(shown.json), mappings: { '': [host] } });
      assert.deepEqual(at(answer.json, 'allocations', host, 'resources'), { VCPU: 2, MEMORY_MB: 100 });
      assert.equal(at(answer.json, 'consumer_generation'), 1);
      assert.equal(answer.headers.get('etag'), shown.headers.get('etag'));
    });
  });

  test(`consumers that ask at once fill what is there and no more, on ${engine}`, async () => {
    await withHosts(engine, 3, async (send) => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => send('PUT', `/allocations/${randomUUID()}`, placed('resources=VCPU:2'))),
      );
      const statuses = answers.map(({ status }) => status);
      assert.equal(statuses.filter((status) => status === 200).length, 12);
      for (const { status, json } of answers) {
        if (status === 200) continue;
        assert.equal(status, 409);
        assert.equal(at(json, 'errors', 0, 'code'), 'placement.no_candidates');
        assert.match(String(at(json, 'errors', 0, 'detail')), /no tree meets resources=VCPU:2\b/);
      }
    });
  });

  test(`what a consumer has is free for its own query, on ${engine}`, async () => {
    await withHosts(engine, 1, async (send, [host = '']) => {
      const consumer = randomUUID();
      accepted(await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:6')));
      accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
      const resized = await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:7', 1));
      assert.deepEqual(at(accepted(resized).json, 'allocations', host, 'resources'), { VCPU: 7 });
      assert.equal(at(resized.json, 'consumer_generation'), 2);
      const tooMuch = await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:8', 2));
      assert.equal(tooMuch.status, 409);
      const stale = await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:1', 1));
      assert.equal(at(stale.json, 'errors', 0, 'code'), 'placement.concurrent_update');
    });
  });
}
