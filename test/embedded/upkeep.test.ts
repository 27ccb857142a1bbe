import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { shortenLog, vacuumTables } from '../../db/engine/embedded.ts';
import { freshDatabase } from '../support/engines.ts';
import { openServiceOn } from '../support/services.ts';

test('on the embedded database, dead rows are vacuumed, and unchanged tables are left alone', async () => {
  const database = await freshDatabase('embedded');
  const service = await openServiceOn(database);
  const { kysely } = service.database;
  const counts = async () => {
    // PostgreSQL writes statistics at most once a second, except on request.
    await sql`select pg_stat_force_next_flush()`.execute(kysely);
    const { rows } = await sql<{ dead: number; vacuums: number }>`
      select n_dead_tup::integer as dead, vacuum_count::integer as vacuums
      from pg_stat_user_tables where relname = 'resource_providers'`.execute(kysely);
    return rows[0];
  };
  try {
    await sql`insert into resource_providers (uuid, name, generation)
      select gen_random_uuid(), 'host-' || n, 0 from generate_series(1, 100) as n`.execute(kysely);
    for (let round = 0; round < 3; round += 1) {
      await sql`update resource_providers set generation = generation + 1`.execute(kysely);
    }
    assert.ok(((await counts())?.dead ?? 0) > 100);
    await vacuumTables(kysely);
    assert.deepEqual(await counts(), { dead: 0, vacuums: 1 });
    await vacuumTables(kysely);
    assert.deepEqual(await counts(), { dead: 0, vacuums: 1 });
  } finally {
    await service.close();
  }
});

test('on the embedded database, the log is shortened when it is longer than it may be', async () => {
  const database = await freshDatabase('embedded');
  const service = await openServiceOn(database);
  const { kysely } = service.database;
  const logBegins = async () =>
    (await sql<{ at: string }>`select redo_lsn::text as at from pg_control_checkpoint()`.execute(kysely)).rows[0]?.at;
  const files = async () =>
    (await sql<{ name: string }>`select name from pg_ls_waldir() order by name`.execute(kysely)).rows.map(
      ({ name }) => name,
    );
  try {
    const [began, first] = [await logBegins(), (await files())[0]];
    await sql`create table filled as select repeat('x', 1000) as text from generate_series(1, 3000)`.execute(kysely);
    await sql`select pg_switch_wal()`.execute(kysely); // the next file of the log begins
    await shortenLog(kysely, 2 ** 30);
    assert.equal(await logBegins(), began);
    assert.ok((await files()).includes(first ?? ''));
    await shortenLog(kysely, 2 ** 20);
    const begins = await logBegins();
    assert.notEqual(begins, began);
    assert.ok(!(await files()).includes(first ?? ''));
    await shortenLog(kysely, 2 ** 20);
    assert.equal(await logBegins(), begins);
  } finally {
    await service.close();
  }
});
