import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { syncStandardNames } from '../../db/schema/sync_standard_names.ts';
import { postgresqlServer } from '../engines.ts';
import { createDatabase } from '../postgresql.ts';

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
