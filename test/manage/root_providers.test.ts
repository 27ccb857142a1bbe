import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { setRootProviderIds } from '../../db/online/set_root_provider_ids.ts';
import { untilWaiting, withTwoConnections } from '../races/two_connections.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';
import { insertOldProvider } from './old_data.ts';

const rootOf = async (database: Database, id: number) =>
  (await database.kysely.selectFrom('resource_providers').select('root_provider_id').where('id', '=', id).execute())[0]
    ?.root_provider_id;

for (const engine of engines) {
  test(`the root is found by following parents, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        // A child with a lower id than its parent, and a child whose grandparent already has its root.
        const leaf = await insertOldProvider(database, 'leaf');
        const root = await insertOldProvider(database, 'root');
        const middle = await insertOldProvider(database, 'middle', root.id);
        const update = (id: number, values: { parent_provider_id?: number; root_provider_id?: number }) =>
          database.kysely.updateTable('resource_providers').set(values).where('id', '=', id).execute();
        await update(leaf.id, { parent_provider_id: middle.id });
        const rooted = await insertOldProvider(database, 'rooted');
        await update(rooted.id, { root_provider_id: rooted.id });
        const child = await insertOldProvider(database, 'child', rooted.id);
        // A loop has no root. The roots of the providers after it are found all the same.
        const chicken = await insertOldProvider(database, 'chicken');
        const egg = await insertOldProvider(database, 'egg', chicken.id);
        await update(chicken.id, { parent_provider_id: egg.id });
        const alone = await insertOldProvider(database, 'alone');

        const migration = setRootProviderIds(database);
        assert.deepEqual(await migration.runBatch(3), { found: 3, done: 3 });
        assert.deepEqual(await migration.runBatch(2), { found: 4, done: 2 }, 'child and alone; not the loop');
        assert.deepEqual(await migration.runBatch(50), { found: 0, done: 0 });
        for (const { id } of [leaf, middle, root]) assert.equal(await rootOf(database, id), root.id);
        for (const { id } of [child, rooted]) assert.equal(await rootOf(database, id), rooted.id);
        for (const { id } of [chicken, egg]) assert.equal(await rootOf(database, id), null);
        assert.equal(await rootOf(database, alone.id), alone.id);
        assert.deepEqual(await setRootProviderIds(database).runBatch(50), { found: 2, done: 0 }, 'a second run');
      } finally {
        await database.close();
      }
    });
  });
}

test('a provider that is moved while its batch waits for its lock gets the root of its new tree in the same run', () =>
  withTwoConnections(async ({ database, other }) => {
    const [first, second, third] = [1, 2, 3];
    await other.query('update resource_providers set root_provider_id = null');
    await other.query('begin');
    await other.query(`update resource_providers set parent_provider_id = ${second} where id = ${third}`);
    const migration = setRootProviderIds(database);
    const done = migration.runBatch(50);
    await untilWaiting(other);
    await other.query('commit');
    assert.deepEqual(await done, { found: 3, done: 3 });
    for (const [id, root] of [
      [first, first],
      [second, second],
      [third, second],
    ] as const) {
      assert.equal(await rootOf(database, id), root);
    }
  }));
