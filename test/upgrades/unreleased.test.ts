/** A database that was made by a version of development between two releases arrives at the schema of the next release. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import {
  executedMigrations,
  migrationNames,
  newerMigrations,
  pendingMigrations,
} from '../../db/schema/executed_migrations.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { dumpSchema } from '../../db/schema/schema_dump.ts';
import { type Engine, engines, withEmptyDatabase } from '../support/engines.ts';
import { unreleasedMigrations } from './unreleased/migrations.ts';

const released = Object.entries(migrations).filter(([name]) => name < '006');
const unreleased = Object.entries(unreleasedMigrations);
const successors = migrationNames.slice(5, 8);
/** What came after them. */
const later = migrationNames.slice(8);

async function withEmpty(engine: Engine, use: (database: Database) => Promise<void>): Promise<void> {
  const open = async (settings: Parameters<typeof openDatabase>[0]) => {
    const database = await openDatabase(settings);
    try {
      await use(database);
    } finally {
      await database.close();
    }
  };
  if (engine === 'embedded') await open({ embeddedPath: 'memory://' });
  else await withEmptyDatabase((connection) => open({ connection, maxPoolSize: 1 }));
}

for (const engine of engines) {
  test(`a database of the last release, and of each version since then, arrives at the same schema: ${engine}`, async () => {
    let expected = '';
    await withEmpty(engine, async (database) => {
      await migrateToLatest(database);
      expected = await dumpSchema(database);
    });
    // With indexes that were dropped later, with the trigger for each row, and all but the last.
    const counts =
      engine === 'embedded' ? [0, unreleased.length] : [0, 3, 6, 9, unreleased.length - 1, unreleased.length];
    for (const count of counts) {
      await withEmpty(engine, async (database) => {
        const made = Object.fromEntries([...released, ...unreleased.slice(0, count)]);
        await migrateToLatest(database, made);
        await sql`insert into resource_providers (uuid, name, generation) values ('p', 'p', 0)`.execute(
          database.kysely,
        );
        assert.deepEqual(await pendingMigrations(database), [...successors, ...later]);
        assert.deepEqual(await newerMigrations(database), []);
        const name = Object.keys(made).at(-1);
        assert.deepEqual(
          await migrateToLatest(database),
          [...(count === unreleased.length ? [] : successors), ...later],
          name,
        );
        assert.equal(await dumpSchema(database), expected, name);
        assert.deepEqual(await executedMigrations(database), migrationNames);
        assert.deepEqual(await migrateToLatest(database), [], 'again');
        const { rows } = await sql`select uuid from resource_providers`.execute(database.kysely);
        assert.deepEqual(rows, [{ uuid: 'p' }]);
      });
    }
  });
}
