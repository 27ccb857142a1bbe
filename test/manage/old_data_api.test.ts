import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OnlineMigration } from '../../db/online/online_migration.ts';
import { onlineMigrations, runBatch } from '../../db/online/run.ts';
import { engines } from '../support/engines.ts';
import { at, requestsTo, type Send } from '../support/requests.ts';
import { type ConfigOverrides, withTestService } from '../support/services.ts';
import { countStrays, insertOldAllocations, insertOldProvider, newUuids } from './old_data.ts';

const owner = { projectId: 'old-project', userId: 'old-user' };
const configured: ConfigOverrides = {
  placement: { incompleteConsumerProjectId: owner.projectId, incompleteConsumerUserId: owner.userId },
};

const call = (send: Send, version: string, method: string, path: string, body?: object) =>
  send(method, path, body, `placement ${version}`);

const resources = { VCPU: 3 };
const listed = (provider: string) => ({ allocations: [{ resource_provider: { uuid: provider }, resources }] });
const keyed = (provider: string) => ({ allocations: { [provider]: { resources } } });
const named = { project_id: 'new-project', user_id: 'new-user' };

/** The writes of each range of versions: the bodies, and the owner of the consumer afterwards. */
const writes = (provider: string, consumer: string, generation: number | null) =>
  [
    { version: '1.0', method: 'PUT', body: listed(provider), becomes: owner },
    { version: '1.7', method: 'PUT', body: listed(provider), becomes: owner },
    { version: '1.8', method: 'PUT', body: { ...listed(provider), ...named } },
    { version: '1.12', method: 'PUT', body: { ...keyed(provider), ...named } },
    { version: '1.27', method: 'PUT', body: { ...keyed(provider), ...named } },
    { version: '1.28', method: 'PUT', body: { ...keyed(provider), ...named, consumer_generation: generation } },
    {
      version: '1.38',
      method: 'PUT',
      body: { ...keyed(provider), ...named, consumer_generation: generation, consumer_type: 'INSTANCE' },
    },
    { version: '1.13', method: 'POST', body: { [consumer]: { ...keyed(provider), ...named } } },
    { version: '1.27', method: 'POST', body: { [consumer]: { ...keyed(provider), ...named } } },
    {
      version: '1.28',
      method: 'POST',
      body: { [consumer]: { ...keyed(provider), ...named, consumer_generation: generation } },
    },
  ].map(({ becomes = { projectId: named.project_id, userId: named.user_id }, ...write }) => ({
    ...write,
    becomes,
    path: write.method === 'PUT' ? `/allocations/${consumer}` : '/allocations',
  }));

for (const engine of engines) {
  test(`requests for old allocations are answered before, during and after the migration on ${engine}`, async () => {
    await withTestService(engine, configured, async (service) => {
      const { database } = service;
      const send = requestsTo(service);
      const provider = await insertOldProvider(database, 'old');
      const consumers = newUuids(4);
      await insertOldAllocations(database, provider.id, consumers);
      const migrations = onlineMigrations(database, owner);

      const check = async (migrated: number): Promise<void> => {
        const { rows } = { rows: await database.kysely.selectFrom('consumers').select('uuid').execute() };
        assert.equal(rows.length, migrated);
        const generations = new Map(rows.map(({ uuid }) => [uuid, 0]));
        const generationOf = (consumer: string) => generations.get(consumer) ?? null;
        for (const consumer of consumers) {
          const get = async (version: string) => (await call(send, version, 'GET', `/allocations/${consumer}`)).json;
          const allocations = { [provider.uuid]: { resources: { VCPU: 1 }, generation: 0 } };
          assert.deepEqual(await get('1.0'), { allocations });
          const owned = { allocations, project_id: owner.projectId, user_id: owner.userId };
          assert.deepEqual(await get('1.12'), owned);
          const guarded = { ...owned, consumer_generation: generationOf(consumer) };
          assert.deepEqual(await get('1.28'), guarded);
          assert.deepEqual(await get('1.38'), { ...guarded, consumer_type: 'unknown' });
        }
        const onProvider = `/resource_providers/${provider.uuid}/allocations`;
        const entry = { resources: { VCPU: 1 } };
        assert.deepEqual((await call(send, '1.27', 'GET', onProvider)).json, {
          allocations: Object.fromEntries(consumers.map((uuid) => [uuid, entry])),
          resource_provider_generation: 0,
        });
        assert.deepEqual((await call(send, '1.28', 'GET', onProvider)).json, {
          allocations: Object.fromEntries(
            consumers.map((uuid) => [uuid, { ...entry, consumer_generation: generationOf(uuid) }]),
          ),
          resource_provider_generation: 0,
        });
        const usages = `/usages?project_id=${owner.projectId}&user_id=${owner.userId}`;
        assert.deepEqual((await call(send, '1.9', 'GET', usages)).json, { usages: { VCPU: 4 } });
        assert.deepEqual((await call(send, '1.38', 'GET', usages)).json, {
          usages: { unknown: { VCPU: 4, consumer_count: 4 } },
        });
      };

      await check(0);
      await runBatch(migrations, 3); // the provider's root, and two consumers
      await check(2);
      await finish(migrations);
      await check(4);
    });
  });

  test(`old allocations are replaced and deleted, before and after the migration, on ${engine}`, async () => {
    await withTestService(engine, configured, async (service) => {
      const { database } = service;
      const send = requestsTo(service);
      const provider = await insertOldProvider(database, 'old');
      for (const migrated of [false, true]) {
        const generation = migrated ? 0 : null;
        const newConsumer = async (): Promise<string> => {
          const [consumer = ''] = newUuids(1);
          await insertOldAllocations(database, provider.id, [consumer]);
          if (migrated) await finish(onlineMigrations(database, owner));
          return consumer;
        };
        for (const index of writes(provider.uuid, '', generation).keys()) {
          const consumer = await newConsumer();
          const write = writes(provider.uuid, consumer, generation)[index];
          assert.ok(write !== undefined);
          const what = `${write.method} at ${write.version}, ${migrated ? 'after' : 'before'} the migration`;
          assert.equal((await call(send, write.version, write.method, write.path, write.body)).status, 204, what);
          const { json } = await call(send, '1.38', 'GET', `/allocations/${consumer}`);
          assert.deepEqual(at(json, 'allocations', provider.uuid, 'resources'), resources, what);
          assert.equal(at(json, 'project_id'), write.becomes.projectId, what);
          assert.equal(at(json, 'user_id'), write.becomes.userId, what);
          assert.equal(at(json, 'consumer_type'), write.version === '1.38' ? 'INSTANCE' : 'unknown', what);
          assert.equal(at(json, 'consumer_generation'), 1, what);
        }
        for (const wrong of migrated ? [null, 1] : [0, 1]) {
          for (const [index, { version }] of writes(provider.uuid, '', wrong).entries()) {
            if (Number(version.slice(2)) < 28) continue;
            const consumer = await newConsumer();
            const write = writes(provider.uuid, consumer, wrong)[index];
            assert.ok(write !== undefined);
            const { status, json } = await call(send, write.version, write.method, write.path, write.body);
            assert.equal(status, 409);
            assert.equal(at(json, 'errors', 0, 'code'), 'placement.concurrent_update');
            assert.equal((await call(send, '1.0', 'DELETE', `/allocations/${consumer}`)).status, 204);
          }
        }
        for (const version of ['1.0', '1.8', '1.28', '1.39']) {
          const path = `/allocations/${await newConsumer()}`;
          assert.equal((await call(send, version, 'DELETE', path)).status, 204);
          assert.deepEqual((await call(send, version, 'GET', path)).json, { allocations: {} });
          assert.equal((await call(send, version, 'DELETE', path)).status, 404);
        }
        const consumer = await newConsumer();
        const empty = { allocations: {}, ...named, consumer_generation: generation };
        assert.equal((await call(send, '1.28', 'PUT', `/allocations/${consumer}`, empty)).status, 204);
        assert.deepEqual((await call(send, '1.28', 'GET', `/allocations/${consumer}`)).json, { allocations: {} });
        assert.deepEqual(await countStrays(database), { allocations: 0, consumers: 0 });
      }
    });
  });

  test(`requests for providers without a root are answered before and after the migration on ${engine}`, async () => {
    await withTestService(engine, configured, async (service) => {
      const { database } = service;
      const send = requestsTo(service);
      const top = await insertOldProvider(database, 'top');
      const middle = await insertOldProvider(database, 'middle', top.id);
      const leaf = await insertOldProvider(database, 'leaf', middle.id);
      const check = async (): Promise<void> => {
        for (const { uuid } of [top, middle, leaf]) {
          const { json } = await call(send, '1.14', 'GET', `/resource_providers/${uuid}`);
          assert.equal(at(json, 'root_provider_uuid'), top.uuid);
          const tree = await call(send, '1.14', 'GET', `/resource_providers?in_tree=${uuid}`);
          assert.equal(at(tree.json, 'resource_providers', 'length'), 3);
        }
      };
      await check();
      assert.deepEqual(
        (await runBatch(onlineMigrations(database, owner), 50)).map(({ found, done }) => ({ found, done })),
        [
          { found: 3, done: 3 },
          { found: 0, done: 0 },
          { found: 0, done: 0 },
          { found: 0, done: 0 },
        ],
      );
      await check();
    });
  });
}

async function finish(migrations: readonly OnlineMigration[]): Promise<void> {
  while ((await runBatch(migrations, 50)).some(({ done }) => done > 0));
}
