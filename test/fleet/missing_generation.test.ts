import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { withTestService } from '../services.ts';

const headers = {
  'openstack-api-version': 'placement 1.39',
  'x-auth-token': 'admin',
  'content-type': 'application/json',
};
const host = '/resource_providers/00000000-0000-4000-8000-000000000001';

test('a provider without a generation, which the schema allows, is one at generation 0', async () => {
  await withTestService('embedded', {}, async ({ app, database }) => {
    const insert = sql`insert into resource_providers (id, uuid, name, root_provider_id)
      values (1, '00000000-0000-4000-8000-000000000001', 'old', 1)`;
    const forget = sql`update resource_providers set generation = null`;
    const send = async (method: string, path: string, body: unknown) => {
      await forget.execute(database.kysely);
      const answer = await app.request(path, { method, headers, body: JSON.stringify(body) });
      assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
    };
    await insert.execute(database.kysely);
    await send('POST', `${host}/inventories`, { resource_class: 'VCPU', total: 8 });
    await send('PUT', `${host}/inventories/VCPU`, { resource_provider_generation: 0, total: 9 });
    await send('PUT', `${host}/traits`, { resource_provider_generation: 0, traits: ['HW_CPU_X86_AVX2'] });
    await send('PUT', `${host}/aggregates`, { resource_provider_generation: 0, aggregates: [] });
    await send('PUT', '/allocations/00000000-0000-4000-8000-00000000000c', {
      allocations: { '00000000-0000-4000-8000-000000000001': { resources: { VCPU: 1 } } },
      project_id: 'project',
      user_id: 'user',
      consumer_generation: null,
      consumer_type: 'INSTANCE',
    });
    const { rows } = await sql`select generation from resource_providers`.execute(database.kysely);
    assert.deepEqual(rows, [{ generation: 1 }]);
  });
});
