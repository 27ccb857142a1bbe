/** The rows of terms that the removal reads with plans from a time without terms. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';
import { reportReads } from '../support/postgresql.ts';

const count = 5000;
const limit = 100;

/** The number of rows of terms, and of entries of their indexes, that were read so far. */
async function readSoFar({ kysely }: Database): Promise<number> {
  await reportReads(kysely);
  const { read } = await onlyRow(
    kysely,
    sql<{ read: number }>`select (
        select sum(seq_tup_read) from pg_stat_user_tables where relname = 'consumer_terms'
      ) + (select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'consumer_terms') as read`,
  );
  return Number(read);
}

test('the removal looks up terms one by one, however many there are', async (t) => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase({ ...settings, maxPoolSize: 1 });
    const { kysely } = database;
    try {
      const provider = sql`insert into resource_providers (uuid, name, generation) values ('p', 'p', 0)`;
      await provider.execute(kysely);
      // After five executions the server keeps one plan for all values.
      for (let time = 0; time < 8; time += 1) await removeEnded(database, firstPosition, limit);
      await sql`insert into consumers (uuid, project_id, user_id, generation, etag)
        select 'consumer ' || n, 1, 1, 1, 'tag' from generate_series(1, ${count}::integer) as n`.execute(kysely);
      await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
        select p.id, 0, c.uuid, 1 from resource_providers p, consumers c`.execute(kysely);
      await sql`insert into consumer_terms select id, 1, clock_timestamp() from consumers`.execute(kysely);
      const before = await readSoFar(database);
      const { removed, next } = await removeEnded(database, firstPosition, limit);
      const read = (await readSoFar(database)) - before;
      t.diagnostic(`it reads ${read} rows and entries for ${limit}`);
      assert.equal(removed.length, limit);
      assert.notEqual(next, undefined);
      assert.ok(read < limit * 12, `it reads ${read}`);
    } finally {
      await database.close();
    }
  });
});
