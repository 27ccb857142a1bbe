import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest, migrations } from '../../db/schema/migrate.ts';
import { syncStandardNames } from '../../db/schema/sync_standard_names.ts';
import { postgresqlServer } from '../engines.ts';
import { createDatabase, databaseUrl } from '../postgresql.ts';
import { until } from '../until.ts';

const migrationsUpTo = (last: string) =>
  Object.fromEntries(Object.entries(migrations).filter(([name]) => name.slice(0, last.length) <= last));

test('migration 006 waits for no writer, blocks none, and logs later changes of open transactions', async () => {
  const { url, drop } = await createDatabase(await postgresqlServer());
  const database = await openDatabase({ connection: url, maxPoolSize: 1 });
  const writers = [1, 2].map(() => new pg.Client({ connectionString: url }));
  const [early, late] = writers;
  assert.ok(early !== undefined && late !== undefined);
  try {
    await migrateToLatest(database, migrationsUpTo('005'));
    await syncStandardNames(database);
    for (const writer of writers) await writer.connect();
    await early.query(
      `insert into resource_providers (id, uuid, name, generation) values (1, 'p1', 'p1', 0), (2, 'p2', 'p2', 0)`,
    );
    const stock = (writer: pg.Client, provider: number, resourceClass: number) =>
      writer.query(`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
        step_size, allocation_ratio) values (${provider}, ${resourceClass}, 10, 0, 1, 10, 1, 1)`);
    await early.query('begin');
    await stock(early, 1, 0);
    assert.deepEqual(await migrateToLatest(database, migrationsUpTo('006')), ['006_inventory_changes']);
    await late.query(`set lock_timeout = '1s'`);
    await stock(late, 2, 0);
    await stock(early, 1, 1);
    await early.query('commit');
    const { rows } = await late.query('select provider_id as id from inventory_changes order by 1');
    assert.deepEqual(rows, [{ id: 1 }, { id: 2 }]);
  } finally {
    await Promise.all(writers.map((writer) => writer.end()));
    await database.close();
    await drop();
  }
});

/** An open writer, and the migrations from 008 on, whose indexes wait for it. */
async function withIndexesWaiting(
  use: (parts: {
    readonly database: Database;
    readonly early: pg.Client;
    readonly late: pg.Client;
    readonly migrated: Promise<readonly string[]>;
  }) => Promise<void>,
): Promise<void> {
  const { url, drop } = await createDatabase(await postgresqlServer());
  const database = await openDatabase({ connection: url, maxPoolSize: 1 });
  const [early, late] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })];
  try {
    await migrateToLatest(database, migrationsUpTo('007'));
    for (const writer of [early, late]) await writer.connect();
    await early.query('begin');
    await early.query(newConsumer(1));
    const migrated = migrateToLatest(database);
    migrated.catch(() => {});
    await until('an index is being built', async () => {
      const { rows } = await late.query('select from pg_stat_progress_create_index');
      return rows.length > 0;
    });
    await use({ database, early, late, migrated });
  } finally {
    await early.end();
    await late.end();
    await database.close();
    await drop();
  }
}

const newConsumer = (number: number) =>
  `insert into consumers (uuid, project_id, user_id) values ('c${number}', ${number}, ${number})`;

const names = ['consumers_type_uuid_idx', 'consumers_user_id_uuid_idx'];
const indexes = async ({ kysely }: Database) => {
  const { rows } = await sql<{ name: string; isValid: boolean }>`
    select relname as name, indisvalid as "isValid" from pg_index join pg_class on pg_class.oid = indexrelid
    where relname = any(${names}::text[]) order by 1`.execute(kysely);
  return rows;
};
const built = names.map((name) => ({ name, isValid: true }));
/** The migration that brings them, and those after it. */
const after007 = Object.keys(migrations).filter((name) => name > '008');

test('the indexes of migration 008 block no writer while they are built', async () => {
  await withIndexesWaiting(async ({ database, early, late, migrated }) => {
    await late.query(`set lock_timeout = '1s'`);
    await late.query(newConsumer(2));
    await late.query(`update consumers set generation = 1 where uuid = 'c2'`);
    await early.query('commit');
    await migrated;
    assert.deepEqual(await indexes(database), built);
  });
});

test('indexes of a migration that were only half built are built again', async () => {
  await withIndexesWaiting(async ({ database, early, late, migrated }) => {
    await late.query(`select pg_terminate_backend(pid) from pg_stat_progress_create_index`);
    await assert.rejects(migrated);
    await early.query('commit');
    assert.deepEqual(await indexes(database), [{ name: 'consumers_user_id_uuid_idx', isValid: false }]);
    assert.deepEqual(await migrateToLatest(database), after007);
    assert.deepEqual(await indexes(database), built);
    assert.deepEqual(await migrateToLatest(database), []);
  });
});

test('several processes that migrate at the same time all end with the indexes of the migrations', async () => {
  await withIndexesWaiting(async ({ database, early, late, migrated }) => {
    const { rows } = await late.query('select current_database() as name');
    const url = databaseUrl(await postgresqlServer(), rows[0].name);
    const others = await Promise.all([1, 2].map(() => openDatabase({ connection: url, maxPoolSize: 1 })));
    try {
      const all = [migrated, ...others.map((other) => migrateToLatest(other))];
      await early.query('commit');
      assert.deepEqual((await Promise.all(all)).flat(), after007);
      assert.deepEqual(await indexes(database), built);
    } finally {
      for (const other of others) await other.close();
    }
  });
});
