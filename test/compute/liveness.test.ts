/** What heartbeats bring about: up and down, little work for the database, retirement. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { retireServices } from '../../db/statements/delete_service.ts';
import { engines } from '../engines.ts';
import { withTestService } from '../services.ts';
import { ask, at, withRegistry } from './nova.ts';

const services = '/compute/v2.1/os-services';

for (const engine of engines) {
  test(`a service that is not heard of is down, and up again by its next heartbeat, on ${engine}`, async () => {
    await withTestService(engine, { compute: { enabled: true, serviceDownTime: 1 } }, async (service) => {
      const beat = () => ask(service, 'compute 2.53', 'POST', services, { host: 'h', binary: 'nova-compute' });
      const state = async () => at((await ask(service, 'compute 2.53', 'GET', services)).json, 'services', 0, 'state');
      assert.equal(at((await beat()).json, 'service', 'state'), 'up');
      assert.equal(await state(), 'up');
      await sleep(1_300);
      assert.equal(await state(), 'down');
      assert.equal(at((await beat()).json, 'service', 'state'), 'up');
      assert.equal(await state(), 'up');
    });
  });

  test(`heartbeats leave nothing in the change log, and few versions of rows, on ${engine}`, async () => {
    await withTestService(engine, withRegistry, async (service) => {
      const { kysely } = service.database;
      const hosts = Array.from({ length: 50 }, (_, index) => ({ host: `host-${index}`, binary: 'nova-compute' }));
      assert.equal((await ask(service, 'compute 2.53', 'POST', services, { services: hosts })).status, 200);
      const count = async () => {
        const { rows } = await sql<{
          changes: number;
        }>`select count(*)::integer as changes from provider_changes`.execute(kysely);
        return rows[0]?.changes;
      };
      const before = await count();
      const seen = await sql<{ seen: string }>`select max(last_seen_up)::text as seen from services`.execute(kysely);
      // One by one, at the same time: they are written together.
      const replies = await Promise.all(hosts.map((host) => ask(service, 'compute 2.53', 'POST', services, host)));
      assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
      assert.equal(await count(), before);
      const after = await sql<{ versions: number; old: number }>`
        select count(distinct xmin::text)::integer as versions,
          (count(*) filter (where last_seen_up <= ${seen.rows[0]?.seen ?? null}::timestamp))::integer as old
        from services`.execute(kysely);
      assert.equal(after.rows[0]?.old, 0, 'all of them are noted');
      assert.ok((after.rows[0]?.versions ?? 99) <= 2, `${after.rows[0]?.versions} transactions wrote 50 heartbeats`);
    });
  });

  test(`of several registrations at once each gets an id of its own on ${engine}`, async () => {
    await withTestService(engine, withRegistry, async (service) => {
      const replies = await Promise.all(
        Array.from({ length: 30 }, (_, index) =>
          ask(service, 'compute 2.52', 'POST', services, {
            host: `host-${index % 20}`,
            binary: 'nova-compute',
            cell: `cell-${(index % 20) % 2}`,
          }),
        ),
      );
      assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
      const listed = at((await ask(service, 'compute 2.53', 'GET', services)).json, 'services') as { id: string }[];
      assert.equal(new Set(listed.map(({ id }) => id)).size, 20);
      const ids = at((await ask(service, 'compute 2.52', 'GET', services)).json, 'services') as { id: number }[];
      assert.equal(new Set(ids.slice(0, 10).map(({ id }) => id)).size, 10);
      assert.equal(new Set(ids.slice(10).map(({ id }) => id)).size, 10);
    });
  });

  test(`silent services are retired, but for those that host or that somebody spoke about, on ${engine}`, async () => {
    await withTestService(engine, withRegistry, async (service) => {
      const { database } = service;
      const names = ['empty', 'hosting', 'disabled', 'forced', 'lively'];
      const beats = names.map((host) => ({ host, binary: 'nova-compute' }));
      await ask(service, 'compute 2.53', 'POST', services, { services: beats });
      const put = (action: string, body: object) =>
        ask(service, 'compute 2.52', 'PUT', `${services}/${action}`, { binary: 'nova-compute', ...body });
      await put('disable', { host: 'disabled' });
      await put('force-down', { host: 'forced', forced_down: true });
      const uuid = '11111111-2222-4333-8444-555555555555';
      const child = '11111111-2222-4333-8444-666666666666';
      await ask(service, 'placement 1.39', 'POST', '/resource_providers', { name: 'hosting', uuid });
      await ask(service, 'placement 1.39', 'POST', '/resource_providers', {
        name: 'a part of it',
        uuid: child,
        parent_provider_uuid: uuid,
      });
      await ask(service, 'placement 1.39', 'PUT', `/resource_providers/${child}/inventories`, {
        resource_provider_generation: 0,
        inventories: { VCPU: { total: 4 } },
      });
      const claimed = await ask(service, 'placement 1.39', 'PUT', `/allocations/${uuid}`, {
        allocations: { [child]: { resources: { VCPU: 1 } } },
        project_id: 'p',
        user_id: 'u',
        consumer_generation: null,
        consumer_type: 'INSTANCE',
      });
      assert.equal(claimed.status, 204);
      assert.deepEqual(await retireServices(database, 60), [], 'all of them were heard of just now');
      await sql`update services set last_seen_up = last_seen_up - interval '2 minutes' where host <> 'lively'`.execute(
        database.kysely,
      );
      assert.deepEqual(await retireServices(database, 60), [{ host: 'empty', binary: 'nova-compute' }]);
      await ask(service, 'placement 1.39', 'DELETE', `/allocations/${uuid}`);
      assert.deepEqual(await retireServices(database, 60), [{ host: 'hosting', binary: 'nova-compute' }]);
    });
  });
}
