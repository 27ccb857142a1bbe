/** Migration 011, which adds triggers to the table of consumers while other programs write to it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { postgresqlServer } from '../engines.ts';
import { createDatabase } from '../postgresql.ts';

test('writers wait for the triggers of migration 011 for short times only, however long a transaction is open', async () => {
  const { url, drop } = await createDatabase(await postgresqlServer());
  const database = await openDatabase({ connection: url, maxPoolSize: 1 });
  const [early, late] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })];
  try {
    const upTo = (last: string) => Object.fromEntries(Object.entries(migrations).filter(([name]) => name < last));
    await migrateToLatest(database, upTo('011'));
    for (const writer of [early, late]) await writer.connect();
    await early.query(
      `insert into projects (id, external_id) values (1, 'p'); insert into users (id, external_id) values (1, 'u')`,
    );
    await early.query('begin');
    await early.query(`insert into consumers (uuid, project_id, user_id) values ('early', 1, 1)`);
    let isDone = false;
    const migrated = migrateToLatest(database, upTo('012')).finally(() => {
      isDone = true;
    });
    // Consumers are written while the migration repeats its attempts.
    await late.query(`set statement_timeout = '5s'`);
    for (let number = 0; number < 20; number += 1) {
      await late.query(`insert into consumers (uuid, project_id, user_id) values ('l${number}', 1, 1)`);
    }
    assert.equal(isDone, false, 'it waits for the open transaction');
    await early.query('commit');
    assert.deepEqual(await migrated, ['011_consumer_terms']);
    await late.query(`insert into consumer_terms select id, generation, now() from consumers`);
    const count = async (): Promise<unknown> =>
      (await late.query('select count(*)::integer as count from consumer_terms')).rows[0].count;
    await late.query(`delete from consumers where uuid = 'l1'`);
    assert.equal(await count(), 20, 'the term is gone with its consumer');
    await late.query('truncate consumers');
    assert.equal(await count(), 0);
  } finally {
    await Promise.all([early.end(), late.end()]);
    await database.close();
    await drop();
  }
});
