import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { ownTables } from '../../db/schema/foreign_tables.ts';
import { dumpSchema } from '../../db/schema/schema_dump.ts';
import { upstreamTables } from '../../db/schema/upstream_tables.ts';
import { engines, postgresqlServer, withFreshDatabase } from '../support/engines.ts';
import { createDatabase, execute } from '../support/postgresql.ts';

const file = path.join(import.meta.dirname, '..', '..', 'db', 'schema', 'schema.sql');

for (const engine of engines) {
  test(`db/schema/schema.sql is what the migrations make on the ${engine} engine (npm run schema writes it)`, async () => {
    const committed = await readFile(file, 'utf8');
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        assert.equal(await dumpSchema(database), committed);
        await database.kysely.schema.createIndex('one_more').on('users').column('created_at').execute();
        assert.notEqual(await dumpSchema(database), committed, 'a difference is found');
      } finally {
        await database.close();
      }
    });
  });
}

test('every table of db/schema/schema.sql is known as one of upstream or of this service', async () => {
  const tables = Array.from((await readFile(file, 'utf8')).matchAll(/^create table (\w+)/gm), ([, name]) => name);
  const ofTools = ['alembic_version', 'kysely_migration', 'kysely_migration_lock'];
  assert.deepEqual(tables.toSorted(), [...ofTools, ...ownTables, ...upstreamTables.map(({ name }) => name)].toSorted());
});

test('db/schema/schema.sql makes the schema in an empty database', async () => {
  const committed = await readFile(file, 'utf8');
  const { url, drop } = await createDatabase(await postgresqlServer());
  try {
    await execute(url, committed);
    const database = await openDatabase({ connection: url, maxPoolSize: 1 });
    const dump = await dumpSchema(database);
    await database.close();
    assert.equal(dump, committed);
  } finally {
    await drop();
  }
});
