/** On the embedded engine: on PostgreSQL the open transactions of other tests, in other databases, delay pruning. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { pruneChanges } from '../../db/fleet/prune_changes.ts';
import { accepted, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

test('a log that grew for months while upstream used the database is pruned in full and in parts', async () => {
  await withTestService('embedded', {}, async ({ database, fleet }) => {
    const log = (xid: number, rows: number) =>
      sql`insert into provider_changes (xid, provider_id, whole)
        select (${xid}::integer + n / 1000)::text::xid8, 1, false from generate_series(1, ${rows}::integer) as n`.execute(
        database.kysely,
      );
    await sql`update provider_changes_horizon set xid = '5'`.execute(database.kysely);
    await log(10, 120_000);
    await log(300, 1);
    await pruneChanges(database, '300');
    const { rows } = await sql<{ xid: string; left: number }>`
      select xid::text, (select count(*)::integer from provider_changes where xid <= '300') as left
      from provider_changes_horizon`.execute(database.kysely);
    assert.deepEqual(rows, [{ xid: '130', left: 1 }]);
    const { loads } = fleet.counts;
    await fleet.fresh();
    assert.equal(fleet.counts.loads, loads, 'a process that has read the whole log does not load everything');
  });
});

test('each pruned part of the inventory log leaves a row that means all providers, until the next prune', async () => {
  await withTestService('embedded', {}, async ({ database }) => {
    const { kysely } = database;
    await sql`insert into inventory_changes (provider_id) select n from generate_series(1, 12000) as n`.execute(kysely);
    const prune = async () => {
      await pruneChanges(database, await pruneChanges(database, undefined));
      const { rows } = await sql<{ xid: string; provider: number | null }>`
        select xid::text, provider_id as provider from inventory_changes order by xid`.execute(kysely);
      return rows;
    };
    const first = await prune();
    assert.deepEqual(
      first.map(({ provider }) => provider),
      [null, null],
      'one for each part',
    );
    assert.deepEqual(await prune(), first);
    await sql`insert into inventory_changes (provider_id) values (1)`.execute(kysely);
    const second = await prune();
    assert.deepEqual(
      second.map(({ provider }) => provider),
      [null],
    );
    assert.notEqual(second[0]?.xid, first[0]?.xid);
  });
});

test('a process that has found no changes for some time writes claims after the inventory log was pruned', async () => {
  await withTestService('embedded', {}, async (service) => {
    const { database, fleet } = service;
    const send = requestsTo(service);
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 8 } });
    const claim = async () =>
      accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
    await claim();
    for (let refreshes = 0; refreshes < 4; refreshes += 1) await fleet.fresh();
    const { loads } = fleet.counts;
    await pruneChanges(database, await pruneChanges(database, undefined));
    const { rows } = await sql`select provider_id from inventory_changes`.execute(database.kysely);
    assert.deepEqual(rows, [{ provider_id: null }], 'the row for all providers is in no other log');
    await claim();
    assert.equal(fleet.counts.loads, loads);
  });
});
