import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { vacuumTables } from '../../db/engine/embedded_upkeep.ts';
import { freshDatabase } from '../engines.ts';
import { openServiceOn } from '../services.ts';

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
