import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { engines } from '../engines.ts';
import { withTestService } from '../services.ts';

type Plans = { readonly custom: number; readonly generic: number };

for (const engine of engines) {
  test(`what changed is read by one plan, however much the log grows between two reads: ${engine}`, async () => {
    await withTestService(
      engine,
      { placementDatabase: { maxPoolSize: 1 } },
      async ({ database: { kysely }, fleet }) => {
        for (let step = 0; step < 3; step += 1) {
          await sql`insert into provider_changes (provider_id, whole)
          select -1, false from generate_series(1, 20000)`.execute(kysely);
          await sql`analyze provider_changes`.execute(kysely);
          for (let read = 0; read < 10; read += 1) await fleet.fresh();
        }
        const { rows } = await sql<Plans>`select custom_plans::integer as custom, generic_plans::integer as generic
        from pg_prepared_statements where statement like '%with changes as%' and statement not like '%pg_prepared%'`.execute(
          kysely,
        );
        assert.deepEqual(rows, [{ custom: 0, generic: 30 }]);
      },
    );
  });
}
