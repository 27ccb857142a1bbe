/** Migration 006, which adds columns to a table that every write of others writes to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { syncStandardNames } from '../../db/schema/sync_standard_names.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase } from '../support/postgresql.ts';

test('writers wait for the columns of migration 006 for short times only, however long a transaction is open', async () => {
  const { url, drop } = await createDatabase(await postgresqlServer());
  const database = await openDatabase({ connection: url, maxPoolSize: 1 });
  const [early, late] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })];
  try {
    const upTo = (last: string) => Object.fromEntries(Object.entries(migrations).filter(([name]) => name < last));
    await migrateToLatest(database, upTo('006'));
    await syncStandardNames(database);
    for (const writer of [early, late]) await writer.connect();
    await early.query('begin');
    await early.query(`insert into resource_providers (uuid, name, generation) values ('early', 'early', 0)`);
    let isDone = false;
    const migrated = migrateToLatest(database, upTo('007')).finally(() => {
      isDone = true;
    });
    // While the migration retries.
    await late.query(`set statement_timeout = '5s'`);
    for (let number = 0; number < 20; number += 1) {
      await late.query(
        `insert into resource_providers (uuid, name, generation) values ('l${number}', 'l${number}', 0)`,
      );
    }
    assert.equal(isDone, false, 'it waits for the open transaction');
    await early.query('commit');
    assert.deepEqual(await migrated, ['006_changed_parts']);
    await late.query(`delete from resource_providers where uuid = 'l1'`);
    const { rows } = await late.query(
      `select count(*)::integer as count, count(uuid)::integer as named, max(uuid) as last from provider_changes
      where provider_id is not null`,
    );
    assert.deepEqual(rows, [{ count: 22, named: 1, last: 'l1' }]);
    // A claim by query relies on what the shorter log has.
    await late.query(`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
      step_size, allocation_ratio) select id, 0, 10, 0, 1, 10, 1, 1 from resource_providers where uuid in ('early', 'l2')`);
    const relied = await late.query('select provider_id from inventory_changes');
    assert.equal(relied.rowCount, 3, 'the deleted provider and the two with inventories');
  } finally {
    await Promise.all([early.end(), late.end()]);
    await database.close();
    await drop();
  }
});
