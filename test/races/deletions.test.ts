import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { engines } from '../engines.ts';
import { withTestService } from '../services.ts';

const headers = {
  'x-auth-token': 'admin',
  'openstack-api-version': 'placement 1.39',
  'content-type': 'application/json',
};
const provider = randomUUID();
const consumers = 200;

for (const engine of engines) {
  test(`deletions that arrive together each say what they found, on ${engine}`, async () => {
    await withTestService(engine, {}, async ({ app, database }) => {
      const send = async (method: string, path: string, body?: unknown): Promise<number> =>
        (await app.request(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }))
          .status;
      await send('POST', '/resource_providers', { name: 'host', uuid: provider });
      const inventories = { VCPU: { total: consumers } };
      await send('PUT', `/resource_providers/${provider}/inventories`, {
        resource_provider_generation: 0,
        inventories,
      });
      const claim = {
        allocations: { [provider]: { resources: { VCPU: 1 } } },
        project_id: 'p',
        user_id: 'u',
        consumer_generation: null,
        consumer_type: 'INSTANCE',
      };
      const uuids = Array.from({ length: consumers }, () => randomUUID());
      const claimed = await Promise.all(uuids.map((uuid) => send('PUT', `/allocations/${uuid}`, claim)));
      assert.deepEqual(new Set(claimed), new Set([204]));

      // Each twice, with strangers in between: one of the two finds what the other has left.
      const statuses = await Promise.all(
        uuids.flatMap((uuid) => [uuid, uuid, randomUUID()]).map((uuid) => send('DELETE', `/allocations/${uuid}`)),
      );
      for (let place = 0; place < statuses.length; place += 3) {
        assert.deepEqual(statuses.slice(place, place + 2).sort(), [204, 404]);
        assert.equal(statuses[place + 2], 404);
      }
      const left = await database.kysely
        .selectFrom('allocations')
        .select(({ fn }) => fn.countAll<string>().as('count'))
        .executeTakeFirstOrThrow();
      assert.equal(Number(left.count), 0);
      assert.deepEqual(await database.kysely.selectFrom('consumers').select('uuid').execute(), []);
      assert.equal(
        await send('PUT', `/allocations/${randomUUID()}`, {
          ...claim,
          allocations: { [provider]: { resources: { VCPU: consumers } } },
        }),
        204,
      );
    });
  });
}
