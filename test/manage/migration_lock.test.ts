import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase } from '../support/postgresql.ts';

test('migrations that begin at once wait for each other, also if each has a single connection', {
  timeout: 60_000,
}, async () => {
  const { url, drop } = await createDatabase(await postgresqlServer());
  const databases = [1, 2].map(() => openDatabase({ connection: url, maxPoolSize: 1 }));
  try {
    const run = await Promise.all(
      databases.map(async (opened) => {
        const database = await opened;
        return database.kysely
          .connection()
          .execute((kysely) => migrateToLatest({ ...database, kysely, unlimited: kysely }));
      }),
    );
    assert.deepEqual(run.map((names) => names.length).toSorted(), [0, Object.keys(migrations).length].toSorted());
  } finally {
    for (const database of databases) await (await database).close();
    await drop();
  }
});
