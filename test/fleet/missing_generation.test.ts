import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { anyEngine } from '../support/engines.ts';
import { accepted, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const uuid = '00000000-0000-4000-8000-000000000001';
const host = `/resource_providers/${uuid}`;

test('a provider whose generation is null, which the schema allows, has generation 0', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const { kysely } = service.database;
    const insert = sql`insert into resource_providers (id, uuid, name, root_provider_id)
      values (1, ${uuid}, 'old', 1)`;
    const forget = sql`update resource_providers set generation = null`;
    const send = async (method: string, path: string, body: unknown) => {
      await forget.execute(kysely);
      accepted(await requestsTo(service)(method, path, body));
    };
    await insert.execute(kysely);
    await send('POST', `${host}/inventories`, { resource_class: 'VCPU', total: 8 });
    await send('PUT', `${host}/inventories/VCPU`, { resource_provider_generation: 0, total: 9 });
    await send('PUT', `${host}/traits`, { resource_provider_generation: 0, traits: ['HW_CPU_X86_AVX2'] });
    await send('PUT', `${host}/aggregates`, { resource_provider_generation: 0, aggregates: [] });
    await send('PUT', '/allocations/00000000-0000-4000-8000-00000000000c', newClaim({ [uuid]: { VCPU: 1 } }));
    const { rows } = await sql`select generation from resource_providers`.execute(kysely);
    assert.deepEqual(rows, [{ generation: 1 }]);
  });
});
