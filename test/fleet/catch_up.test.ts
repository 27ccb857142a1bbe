/**
 * A process that is far behind: very many providers have changed at once, or the database took too long to list the
 * changes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { hasSqlstate, isTimedOut, sqlstate } from '../../db/engine/failures.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { catchUp, loadFleet } from '../../src/fleet/keep/load.ts';
import { formOf } from '../races/fleet_form.ts';
import { anyEngine, engines, type TestDatabase, withFreshDatabase } from '../support/engines.ts';
import { reportReads } from '../support/postgresql.ts';

/** Makes providers with ten inventories each, as an import does: nothing of this is logged. */
async function makeProviders({ kysely }: Database, count: number): Promise<void> {
  await kysely.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = 'replica'`.execute(transaction);
    await sql`insert into resource_providers (id, uuid, name, generation)
      select n, 'u' || n, 'p' || n, 0 from generate_series(1, ${count}::integer) as n`.execute(transaction);
    await sql`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio)
      select n, c, 10, 0, 1, 10, 1, 1 from generate_series(1, ${count}::integer) as n, generate_series(0, 9) as c`.execute(
      transaction,
    );
  });
}

/** Changes many providers: the inventories of all, the names of some, and deletes the last one. */
async function changeMany({ kysely }: Database, count: number): Promise<void> {
  await kysely.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = 'replica'`.execute(transaction);
    await sql`update inventories set total = total + 1 where resource_provider_id <= ${count}`.execute(transaction);
    await sql`update resource_providers set name = 'r' || id, parent_provider_id = id + 1 where id in (3, 5)`.execute(
      transaction,
    );
    await sql`delete from inventories where resource_provider_id = ${count}`.execute(transaction);
    await sql`delete from resource_providers where id = ${count}`.execute(transaction);
    await sql`insert into provider_changes (provider_id, whole)
      select n, true from generate_series(1, ${count}::integer) as n`.execute(transaction);
  });
}

async function assertTrue(fleet: FleetKeeper, database: Database): Promise<void> {
  assert.deepEqual(formOf(await fleet.fresh()), formOf((await loadFleet(database)).living.fleet));
}

for (const engine of engines) {
  test(`only changed providers are read again, and all providers if most of them changed, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        await makeProviders(database, 8000);
        const fleet = await openFleet(database);
        const freed: unknown[] = [];
        fleet.watchRoom((which) => freed.push(which));
        await changeMany(database, 3500);
        await database.kysely.insertInto('traits').values({ name: 'CUSTOM_OTHER' }).execute();
        await sql`insert into limits (project, generation, resources, consumers, updated_at)
          values ('p', 1, '{"VCPU": 1}', '{}', now())`.execute(database.kysely);
        await assertTrue(fleet, database);
        assert.equal(fleet.counts.loads, 1);
        await changeMany(database, 4500);
        await assertTrue(fleet, database);
        assert.equal(fleet.counts.loads, 2);
        assert.deepEqual(freed, ['all', 'all'], 'claims that wait for room look at all trees after each');
      } finally {
        await database.close();
      }
    });
  });
}

test('the parts of changed providers are read by indexes', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      await makeProviders(database, 12_000);
      await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
        select id, 0, 'c' || id, 1 from resource_providers`.execute(database.kysely);
      await sql`vacuum analyze`.execute(database.kysely);
      const { living, snapshot } = await loadFleet(database);
      await changeMany(database, 4000);
      const before = await wholeReads(database);
      const caughtUp = await catchUp(database, living, snapshot);
      caughtUp?.apply();
      assert.equal(living.fleet.byId.get(17)?.inventories[0]?.fields.total, 11);
      assert.equal((await wholeReads(database)) - before, 0);
    } finally {
      await database.close();
    }
  });
});

/** How often the connection on which fleets are read has read a whole table of parts of providers. */
async function wholeReads({ unlimited }: Database): Promise<number> {
  await reportReads(unlimited);
  const { count } = await onlyRow(
    unlimited,
    sql<{ count: number }>`select sum(seq_scan)::integer as count from pg_stat_user_tables
      where relname in ('inventories', 'allocations', 'resource_provider_traits')`,
  );
  return count;
}

const withTimeout = (settings: TestDatabase['settings'], statementTimeoutMs: number) => {
  if (!('connection' in settings)) throw new Error('Only a PostgreSQL server has a limit for statements.');
  return { ...settings, statementTimeoutMs };
};

/** Opens the fleet. On a busy machine that may reach the time limit as well; then the test retries. */
async function openInTime(database: Database): Promise<FleetKeeper> {
  for (;;) {
    try {
      return await openFleet(database);
    } catch (error) {
      if (!isTimedOut(error)) throw error;
    }
  }
}

test('if reading the changes reaches the time limit, the next refresh has no limit and succeeds', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const [database, unlimited] = await Promise.all([openDatabase(withTimeout(settings, 10)), openDatabase(settings)]);
    try {
      await makeProviders(unlimited, 1500);
      const fleet = await openInTime(database);
      await changeMany(unlimited, 1000);
      await assert.rejects(fleet.fresh(), isTimedOut, 'otherwise this test proves nothing');
      await assertTrue(fleet, unlimited);
      assert.equal(fleet.counts.loads, 1);
    } finally {
      await Promise.all([database.close(), unlimited.close()]);
    }
  });
});

test('while a table is locked every refresh fails, and the first refresh after that works', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const limited = withTimeout(settings, 300);
    const database = await openDatabase(limited);
    const other = new pg.Client({ connectionString: limited.connection });
    await other.connect();
    try {
      const fleet = await openInTime(database);
      await other.query(`insert into resource_providers (uuid, name, generation) values ('u', 'new', 0)`);
      await other.query('begin; lock table resource_providers in access exclusive mode');
      await assert.rejects(fleet.fresh(), isTimedOut);
      await assert.rejects(fleet.fresh(), (error) => hasSqlstate(error, sqlstate.lockNotAvailable));
      await other.query('commit');
      assert.ok((await fleet.fresh()).byName.has('new'));
    } finally {
      await other.end();
      await database.close();
    }
  });
});
