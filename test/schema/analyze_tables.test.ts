/** Which tables are analyzed after migrations, a load and an import. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { analyzeTables } from '../../db/schema/analyze_tables.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';

for (const engine of engines) {
  test(`large tables are analyzed; small ones keep what the planner assumes of a new table: ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase({ ...settings, maxPoolSize: 1 });
      const { kysely } = database;
      try {
        await sql`insert into projects (external_id) select 'p' || n from generate_series(1, 5000) as n`.execute(
          kysely,
        );
        await sql`insert into users (external_id) values ('u')`.execute(kysely);
        await analyzeTables(kysely);
        const { rows } = await sql<{ name: string }>`
          select distinct tablename as name from pg_stats where tablename in ('projects', 'users', 'consumers')`.execute(
          kysely,
        );
        assert.deepEqual(rows, [{ name: 'projects' }]);
      } finally {
        await database.close();
      }
    });
  });
}
