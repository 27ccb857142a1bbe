import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openService, type PlacementService } from '../../src/service.ts';
import { createDatabase, execute, startPostgresql } from '../postgresql.ts';
import { testConfig } from '../services.ts';

const headers = {
  'x-auth-token': 'admin',
  'openstack-api-version': 'placement 1.39',
  'content-type': 'application/json',
};
const host = randomUUID();

const send = (app: PlacementService['app'], method: string, path: string, body: unknown) =>
  app.request(path, { method, headers, body: JSON.stringify(body) });

const claim = (app: PlacementService['app'], consumer: string) =>
  send(app, 'PUT', `/allocations/${consumer}`, {
    allocations: { [host]: { resources: { VCPU: 1 } } },
    project_id: 'p',
    user_id: 'u',
    consumer_generation: null,
    consumer_type: 'INSTANCE',
  });

test('PostgreSQL dies under load: 503 until it is back, and nothing that was acknowledged is lost', async () => {
  const server = await startPostgresql({ durable: true });
  const { url } = await createDatabase(server.url);
  const placementDatabase = { ...testConfig().placementDatabase, connection: url, syncOnStartup: true };
  const service = await openService(testConfig({ placementDatabase }));
  const { app } = service;
  try {
    assert.equal((await send(app, 'POST', '/resource_providers', { uuid: host, name: 'host' })).status, 200);
    const inventories = { VCPU: { total: 100_000 } };
    const stocked = { resource_provider_generation: 0, inventories };
    assert.equal((await send(app, 'PUT', `/resource_providers/${host}/inventories`, stocked)).status, 200);

    const acknowledged: string[] = [];
    const statuses = new Map<number, number>();
    let ended = false;
    const client = async (): Promise<void> => {
      while (!ended) {
        const consumer = randomUUID();
        const { status, headers: got } = await claim(app, consumer);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 204) acknowledged.push(consumer);
        if (status === 503) {
          assert.equal(got.get('retry-after'), '1');
          await sleep(20);
        }
      }
    };
    const clients = Array.from({ length: 8 }, client);
    for (let round = 0; round < 3; round += 1) {
      await sleep(300);
      // A backend that is killed takes the whole server down, which then recovers from its log.
      const backend = await execute(
        url,
        "select pid from pg_stat_activity where application_name = 'placement' limit 1",
      );
      process.kill(backend.rows[0].pid, 'SIGKILL');
      const killedAt = Date.now();
      const before = acknowledged.length;
      await sleep(50);
      while (acknowledged.length <= before + 8) {
        assert.ok(Date.now() - killedAt < 5_000, 'claims are written again within 5 s');
        await sleep(20);
      }
    }
    ended = true;
    await Promise.all(clients);

    assert.deepEqual([...statuses.keys()].sort(), [204, 503], 'no other answers');
    const answer = await app.request(`/resource_providers/${host}/allocations`, { headers });
    const { allocations } = (await answer.json()) as { readonly allocations: Readonly<Record<string, unknown>> };
    assert.deepEqual(
      acknowledged.filter((consumer) => !Object.hasOwn(allocations, consumer)),
      [],
    );

    await server.stop();
    for (const path of ['/resource_providers', '/allocation_candidates?resources=VCPU:1', '/healthcheck']) {
      assert.equal((await app.request(path, { headers })).status, 503, path);
    }
    assert.equal((await claim(app, randomUUID())).status, 503);
    const metrics = await (await app.request('/metrics')).text();
    assert.match(metrics, /^placement_claims_total\{outcome="written"\} [1-9]/m);
    assert.doesNotMatch(metrics, /^openstack_placement/m);
  } finally {
    await service.close();
    await server.stop();
  }
});
