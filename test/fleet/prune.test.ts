import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { pruneOnce } from '../../src/fleet/prune.ts';
import { withTestService } from '../services.ts';

test('a log that grew for months, while upstream served the database, is pruned whole and in parts', async () => {
  await withTestService('embedded', {}, async ({ database, fleet }) => {
    const log = (xid: number, rows: number) =>
      sql`insert into provider_changes (xid, provider_id, whole)
        select (${xid}::integer + n / 1000)::text::xid8, 1, false from generate_series(1, ${rows}::integer) as n`.execute(
        database.kysely,
      );
    await sql`update provider_changes_horizon set xid = '5'`.execute(database.kysely);
    await log(10, 120_000);
    await log(300, 1);
    await pruneOnce(database, '300');
    const { rows } = await sql<{ xid: string; left: number }>`
      select xid::text, (select count(*)::integer from provider_changes where xid <= '300') as left
      from provider_changes_horizon`.execute(database.kysely);
    assert.deepEqual(rows, [{ xid: '130', left: 1 }]);
    const { loads } = fleet.counts;
    await fleet.fresh();
    assert.equal(fleet.counts.loads, loads, 'a process that has seen it all need not load');
  });
});
