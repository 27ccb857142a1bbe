/** A write that was done is answered as such, also if another request has deleted or changed it before the answer. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine, engines } from '../support/engines.ts';
import { accepted, at, makeProvider, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

/** Runs something before a refresh of the fleet. @param refresh its number, counted from 1 */
function beforeRefresh({ fleet }: PlacementService, refresh: number, meanwhile: () => Promise<unknown>): void {
  const { fresh } = fleet;
  let refreshes = 0;
  fleet.fresh = async () => {
    refreshes += 1;
    if (refreshes === refresh) {
      fleet.fresh = fresh;
      await meanwhile();
    }
    return fresh();
  };
}

for (const engine of engines) {
  test(`a provider that is made, or changed, is in the answer as it was written, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const { kysely } = service.database;
      const send = requestsTo(service, 'placement 2.6');
      const [root, parent] = [randomUUID(), randomUUID()];
      await makeProvider(send, root, {});
      await makeProvider(send, parent, {}, { parent_provider_uuid: root });
      const meanwhile: Readonly<Record<string, (uuid: string) => Promise<unknown>>> = {
        deleted: (uuid) => sql`delete from resource_providers where uuid = ${uuid}`.execute(kysely),
        renamed: (uuid) =>
          sql`update resource_providers set name = ${`later ${uuid}`}, generation = 5 where uuid = ${uuid}`.execute(
            kysely,
          ),
      };
      for (const [what, change] of Object.entries(meanwhile)) {
        const uuid = randomUUID();
        beforeRefresh(service, 1, () => change(uuid));
        const made = accepted(
          await send('POST', '/resource_providers', { uuid, name: uuid, parent_provider_uuid: parent }),
        );
        const shown = { uuid, name: uuid, generation: 0, parent_provider_uuid: parent, root_provider_uuid: root };
        for (const [field, value] of Object.entries(shown))
          assert.equal(at(made.json, field), value, `${what}: ${field}`);
        assert.equal(made.headers.get('etag'), at(made.json, 'etag'));

        const other = randomUUID();
        await makeProvider(send, other, {}, { parent_provider_uuid: parent });
        const before = accepted(await send('GET', `/resource_providers/${other}`)).json;
        // The first two reads are before the write.
        beforeRefresh(service, 3, () => change(other));
        const changed = accepted(await send('PUT', `/resource_providers/${other}`, { name: `new ${other}` }));
        assert.equal(at(changed.json, 'name'), `new ${other}`, what);
        assert.equal(at(changed.json, 'parent_provider_uuid'), parent);
        assert.equal(at(changed.json, 'root_provider_uuid'), root);
        assert.equal(at(changed.json, 'generation'), at(before, 'generation'));
      }
    });
  });

  test(`traits that are written are in the answer, though they are deleted before it is sent, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const { kysely } = service.database;
      const send = requestsTo(service, 'placement 2.6');
      const host = randomUUID();
      await makeProvider(send, host, {});
      accepted(await send('PUT', '/traits/CUSTOM_A'));
      await send('GET', '/traits');
      // Without If-Match the first judgement reads no fleet; the first read is that after the write.
      beforeRefresh(service, 1, async () => {
        await sql`delete from resource_provider_traits`.execute(kysely);
        await sql`delete from traits where name = 'CUSTOM_A'`.execute(kysely);
      });
      const body = { resource_provider_generation: 1, traits: ['CUSTOM_A'] };
      const { json } = accepted(await send('PUT', `/resource_providers/${host}/traits`, body));
      assert.deepEqual(at(json, 'traits'), ['CUSTOM_A']);
      assert.equal(at(json, 'resource_provider_generation'), 2);
    });
  });
}

test('a provider whose parent is set to the present one stays, also if another request moves it meanwhile', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.6');
    const [uuid, parent, other] = [randomUUID(), randomUUID(), randomUUID()];
    for (const each of [parent, other]) await makeProvider(send, each, {});
    await makeProvider(send, uuid, {}, { parent_provider_uuid: parent });
    const { write } = service.database;
    Object.assign(service.database, {
      write: async (...sent: Parameters<typeof write>) => {
        Object.assign(service.database, { write });
        accepted(await send('PUT', `/resource_providers/${uuid}`, { name: 'moved', parent_provider_uuid: other }));
        return write(...sent);
      },
    });
    const named = { name: 'kept', parent_provider_uuid: parent };
    const answer = accepted(await send('PUT', `/resource_providers/${uuid}`, named));
    const { json } = await send('GET', `/resource_providers/${uuid}`);
    for (const [field, value] of Object.entries(named)) {
      assert.equal(at(answer.json, field), value);
      assert.equal(at(json, field), value);
    }
  });
});
