import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { anyEngine } from '../support/engines.ts';
import { withTestService } from '../support/services.ts';

/** How often the server has planned each prepared statement of the connection, for all values or for one execution. */
type Plans = { readonly statement: string; readonly for_all: number; readonly for_one: number };

test('every statement keeps its plan, even if the log of changes grows much', async () => {
  await withTestService(anyEngine, { placementDatabase: { maxPoolSize: 1 } }, async ({ database, fleet }) => {
    const { kysely } = database;
    const refreshes = 12;
    for (let round = 0; round < refreshes; round += 1) {
      // Without a change a refresh would only look whether there is one.
      await sql`insert into provider_changes (provider_id, whole)
        select -1, false from generate_series(1, ${round === 6 ? 20_000 : 1}::integer)`.execute(kysely);
      await fleet.fresh();
    }
    const { rows } =
      await sql<Plans>`select statement, generic_plans::integer as for_all, custom_plans::integer as for_one
      from pg_prepared_statements`.execute(kysely);
    assert.deepEqual(
      rows.filter(({ for_one }) => for_one > 0),
      [],
    );
    // Left to itself, the server would plan the first five executions of a connection for one execution each. The connection may be a
    // new one, so their number says nothing.
    const ofRefresh = rows.filter(({ statement }) => /^\s*with changes as materialized/.test(statement));
    assert.ok(
      ofRefresh.some(({ for_all }) => for_all > 0),
      JSON.stringify(rows),
    );
  });
});
