/** The effects of heartbeats: up and down, little work for the database, retirement. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { retireServices } from '../../db/statements/services/delete_service.ts';
import { engines } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { asNova, services, withRegistry } from './nova.ts';

for (const engine of engines) {
  test(`a service without a heartbeat goes down, and its next heartbeat brings it up again, on ${engine}`, async () => {
    await withTestService(engine, { compute: { enabled: true, serviceDownTime: 60 } }, async (service) => {
      const send = asNova(service);
      const beat = () => send('POST', services, { host: 'h', binary: 'nova-compute' });
      const state = async () => at((await send('GET', services)).json, 'services', 0, 'state');
      assert.equal(at((await beat()).json, 'service', 'state'), 'up');
      assert.equal(await state(), 'up');
      await sql`update services set last_seen_up = last_seen_up - interval '61 seconds'`.execute(
        service.database.kysely,
      );
      assert.equal(await state(), 'down');
      assert.equal(at((await beat()).json, 'service', 'state'), 'up');
      assert.equal(await state(), 'up');
    });
  });

  test(`heartbeats write nothing to the change log, and few row versions, on ${engine}`, async () => {
    await withTestService(engine, withRegistry, async (service) => {
      const { kysely } = service.database;
      const send = asNova(service);
      const hosts = Array.from({ length: 50 }, (_, index) => ({ host: `host-${index}`, binary: 'nova-compute' }));
      accepted(await send('POST', services, { services: hosts }));
      const count = async () => {
        const { rows } = await sql<{
          changes: number;
        }>`select count(*)::integer as changes from provider_changes`.execute(kysely);
        return rows[0]?.changes;
      };
      const before = await count();
      const seen = await sql<{ seen: string }>`select max(last_seen_up)::text as seen from services`.execute(kysely);
      // The heartbeats are sent one by one, at the same time, and the service writes them together.
      const replies = await Promise.all(hosts.map((host) => send('POST', services, host)));
      assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
      assert.equal(await count(), before);
      const after = await sql<{ versions: number; old: number }>`
        select count(distinct xmin::text)::integer as versions,
          (count(*) filter (where last_seen_up <= ${seen.rows[0]?.seen ?? null}::timestamp))::integer as old
        from services`.execute(kysely);
      assert.equal(after.rows[0]?.old, 0, 'all heartbeats are stored');
      assert.ok((after.rows[0]?.versions ?? 99) <= 2, `${after.rows[0]?.versions} transactions wrote 50 heartbeats`);
    });
  });

  test(`each of several simultaneous registrations gets a different id on ${engine}`, async () => {
    await withTestService(engine, withRegistry, async (service) => {
      const send = asNova(service);
      const old = requestsTo(service, 'compute 2.52');
      const replies = await Promise.all(
        Array.from({ length: 30 }, (_, index) =>
          old('POST', services, {
            host: `host-${index % 20}`,
            binary: 'nova-compute',
            cell: `cell-${(index % 20) % 2}`,
          }),
        ),
      );
      assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
      const listed = at((await send('GET', services)).json, 'services') as { id: string }[];
      assert.equal(new Set(listed.map(({ id }) => id)).size, 20);
      const ids = at((await old('GET', services)).json, 'services') as { id: number }[];
      assert.equal(new Set(ids.slice(0, 10).map(({ id }) => id)).size, 10);
      assert.equal(new Set(ids.slice(10).map(({ id }) => id)).size, 10);
    });
  });

  test(`silent services are retired, unless they host servers or are disabled or forced down, on ${engine}`, async () => {
    await withTestService(engine, withRegistry, async (service) => {
      const { database } = service;
      const [send, nova] = [requestsTo(service), asNova(service)];
      const names = ['empty', 'hosting', 'disabled', 'forced', 'lively'];
      const beats = names.map((host) => ({ host, binary: 'nova-compute' }));
      await nova('POST', services, { services: beats });
      const put = (action: string, body: object) =>
        nova('PUT', `${services}/${action}`, { binary: 'nova-compute', ...body }, 'compute 2.52');
      await put('disable', { host: 'disabled' });
      await put('force-down', { host: 'forced', forced_down: true });
      const uuid = '11111111-2222-4333-8444-555555555555';
      const child = '11111111-2222-4333-8444-666666666666';
      accepted(await send('POST', '/resource_providers', { name: 'hosting', uuid }));
      await makeProvider(send, child, { VCPU: { total: 4 } }, { name: 'a part of it', parent_provider_uuid: uuid });
      accepted(await send('PUT', `/allocations/${uuid}`, newClaim({ [child]: { VCPU: 1 } })));
      assert.deepEqual(await retireServices(database, 60), [], 'all services have just sent a heartbeat');
      await sql`update services set last_seen_up = last_seen_up - interval '2 minutes' where host <> 'lively'`.execute(
        database.kysely,
      );
      assert.deepEqual(await retireServices(database, 60), [{ host: 'empty', binary: 'nova-compute' }]);
      await send('DELETE', `/allocations/${uuid}`);
      assert.deepEqual(await retireServices(database, 60), [{ host: 'hosting', binary: 'nova-compute' }]);
    });
  });
}
