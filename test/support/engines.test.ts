import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { pendingMigrations } from '../../db/schema/executed_migrations.ts';
import { engines, withFreshDatabase } from './engines.ts';

for (const engine of engines) {
  test(`a fresh ${engine} database has the schema and the standard names, and nothing from another test`, async () => {
    for (const round of [1, 2]) {
      await withFreshDatabase(engine, async ({ settings }) => {
        const database = await openDatabase(settings);
        try {
          assert.equal(database.engine, engine);
          assert.deepEqual(await pendingMigrations(database), []);
          const traits = await database.kysely.selectFrom('traits').select('name').execute();
          assert.ok(traits.some(({ name }) => name === 'HW_CPU_X86_AVX2'));
          assert.ok(!traits.some(({ name }) => name === 'CUSTOM_LEFT_BEHIND'), `round ${round}`);
          await database.kysely.insertInto('traits').values({ name: 'CUSTOM_LEFT_BEHIND' }).execute();
        } finally {
          await database.close();
        }
      });
    }
  });
}
