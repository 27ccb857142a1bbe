/** A disabled service, the trait on its provider, and what schedulers see: with the very next request, and in races. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { listen } from '../../src/http/server/listen.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine, type Engine, withFreshDatabase } from '../support/engines.ts';
import { at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { openServiceOn, withTestService } from '../support/services.ts';
import { asNova, services, withRegistry } from './nova.ts';
import { startRegistry } from './registry_process.ts';

const candidates = '/allocation_candidates?resources=VCPU:1&required=!COMPUTE_STATUS_DISABLED';

test('a disabled service is not among the candidates from the very next request on', async () => {
  await withTestService(anyEngine, withRegistry, async (service) => {
    const ids = await makeHosts(service, 3);
    for (let round = 0; round < 20; round += 1) {
      const id = ids[round % ids.length];
      const wanted = 3 - 1;
      await asNova(service)('PUT', `${services}/${id}`, { status: 'disabled' });
      assert.equal(await countCandidates(service), wanted, `round ${round}`);
      await asNova(service)('PUT', `${services}/${id}`, { status: 'enabled' });
      assert.equal(await countCandidates(service), 3, `round ${round}`);
    }
  });
});

test('trait and status agree after enabling, disabling and claiming at the same time, on the embedded database', async () => {
  await withTestService('embedded', withRegistry, async (service) => {
    await race('embedded', [service]);
  });
});

test('a host that one process disables is no candidate in the very next request to another process', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const first = await openServiceOn(database, withRegistry);
    const second = await startRegistry(database.config);
    try {
      const listening = await listen(first.app, { host: '127.0.0.1', port: 0 });
      const ids = await makeHosts(first, 2);
      for (let round = 0; round < 20; round += 1) {
        const [writer, reader] = round % 2 === 0 ? [listening.url, second.url] : [second.url, listening.url];
        for (const [status, wanted] of [['disabled', 1] as const, ['enabled', 2] as const]) {
          const changed = await fetched(writer, 'compute 2.53', 'PUT', `${services}/${ids[round % 2]}`, { status });
          assert.equal(at(changed, 'service', 'status'), status);
          const found = await fetched(reader, 'placement 1.39', 'GET', candidates);
          assert.equal(at(found, 'allocation_requests', 'length'), wanted, `round ${round}, ${status}`);
        }
      }
      await listening.close();
    } finally {
      await second.kill();
      await first.close();
    }
  });
});

test('two services on one database race, and trait and status always agree', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const pair = await Promise.all([openServiceOn(database, withRegistry), openServiceOn(database, withRegistry)]);
    try {
      await race('postgresql', pair);
    } finally {
      await Promise.all(pair.map((service) => service.close()));
    }
  });
});

/**
 * Operators, an agent and claims race for the same host. Whenever all of them pause, trait and status must agree, and
 * no claim may be lost.
 */
async function race(engine: Engine, servers: readonly PlacementService[]): Promise<void> {
  const [service] = servers;
  if (service === undefined) throw new Error('A race needs a service.');
  const some = (index: number): PlacementService => servers[index % servers.length] ?? service;
  const ids = await makeHosts(service, 2);
  let claimed = 0;
  for (let round = 0; round < (engine === 'embedded' ? 6 : 12); round += 1) {
    const statuses = Array.from({ length: 6 }, (_, index) => ((index + round) % 2 === 0 ? 'disabled' : 'enabled'));
    const replies = await Promise.all([
      ...statuses.map((status, index) => asNova(some(index))('PUT', `${services}/${ids[index % 2]}`, { status })),
      asNova(some(round))('POST', services, { host: 'host-0', binary: 'nova-compute' }),
      ...Array.from({ length: 6 }, (_, index) => {
        const claim = newClaim({ [hostUuid(index % 2)]: { VCPU: 1 } });
        return requestsTo(some(index + 1))('PUT', `/allocations/${consumer(round, index)}`, claim);
      }),
    ]);
    const refused = replies.filter(({ status }) => status !== 200 && status !== 204);
    assert.deepEqual(
      refused.map(({ json }) => json),
      [],
    );
    claimed += 6;
    const { rows } = await sql<{ host: string; disabled: boolean; marked: boolean }>`
      select s.host, s.disabled, exists (
        select from resource_provider_traits h join traits t on t.id = h.trait_id
        where h.resource_provider_id = p.id and t.name = 'COMPUTE_STATUS_DISABLED') as marked
      from services s join resource_providers p on p.name = s.host order by s.host`.execute(service.database.kysely);
    assert.equal(rows.length, 2);
    for (const { host, disabled, marked } of rows) assert.equal(marked, disabled, `${host} in round ${round}`);
    const enabled = rows.filter(({ disabled }) => !disabled).length;
    for (const each of servers) assert.equal(await countCandidates(each), enabled);
  }
  const { rows } = await sql<{ used: number }>`select sum(used)::integer as used from allocations`.execute(
    service.database.kysely,
  );
  assert.equal(rows[0]?.used, claimed);
}

const hostUuid = (index: number): string => `00000000-0000-4000-8000-00000000000${index}`;
const consumer = (round: number, index: number): string =>
  `00000000-0000-4000-9000-${String(round * 100 + index).padStart(12, '0')}`;

/** Hosts with 1,000 VCPU and an agent each. @returns the UUIDs of the services. */
async function makeHosts(service: PlacementService, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const [name, uuid] = [`host-${index}`, hostUuid(index)];
    await makeProvider(requestsTo(service), uuid, { VCPU: { total: 1000 } }, { name });
    const reply = await asNova(service)('POST', services, { host: name, binary: 'nova-compute' });
    ids.push(String(at(reply.json, 'service', 'id')));
  }
  return ids;
}

async function countCandidates(service: PlacementService): Promise<unknown> {
  const { json } = await requestsTo(service)('GET', candidates);
  return at(json, 'allocation_requests', 'length');
}

async function fetched(url: string, version: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { 'x-auth-token': 'admin', 'openstack-api-version': version, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return await response.json();
}
