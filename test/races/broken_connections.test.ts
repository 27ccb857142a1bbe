/** Connections to PostgreSQL break: earlier data is only trusted if it is certain that the server still runs. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';
import { until } from '../support/until.ts';
import { openSwitch } from './switch.ts';

type Opened = { readonly database: Database; readonly fleet: FleetKeeper; readonly connection: string };

/** Calls back with a fleet on PostgreSQL that has a host of 10 VCPU. */
async function withFleet(use: (opened: Opened) => Promise<void>, maxLifetimeSeconds = 0): Promise<void> {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    if (!('connection' in settings)) throw new Error('Connections that break need a PostgreSQL server.');
    const { connection } = settings;
    await execute(
      connection,
      `insert into resource_providers (id, uuid, name, generation) values (1, 'p', 'p', 5);
       insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
         allocation_ratio) values (1, 0, 10, 0, 1, 10, 1, 1)`,
    );
    const database = await openDatabase({ ...settings, maxLifetimeSeconds });
    try {
      await use({ database, fleet: await openFleet(database), connection });
    } finally {
      await database.close();
    }
  });
}

const placementConnections = `select pid from pg_stat_activity
  where application_name = 'placement' and datname = current_database() order by backend_start`;

/** Ends connections of the process, as an administrator does, and waits until it has noticed. */
async function cutOff({ database, connection }: Opened, which: 'all' | 'the first'): Promise<void> {
  const before = database.breaks.count;
  const { rows } = await execute(
    connection,
    `select pg_terminate_backend(pid) from (${placementConnections} ${which === 'all' ? '' : 'limit 1'}) as chosen`,
  );
  assert.ok(rows.length > 0);
  await until('it is noticed', () => database.breaks.count === before + rows.length);
}

/** Opens this many connections, which are idle then. */
const useConnections = ({ database }: Opened, count: number) =>
  Promise.all(Array.from({ length: count }, () => sql`select pg_sleep(0.2)`.execute(database.kysely)));

test('one connection is cut off and another one still works: the fleet is not loaded again', () =>
  withFleet(async (opened) => {
    const { database, fleet } = opened;
    await useConnections(opened, 3);
    await cutOff(opened, 'the first');
    assert.equal(fleet.isInDoubt(), true);
    await fleet.fresh();
    assert.deepEqual([fleet.isInDoubt(), fleet.counts.loads, database.breaks.count], [false, 1, 1]);
  }));

test('all connections are cut off: the fleet is loaded again, once', () =>
  withFleet(async (opened) => {
    const { fleet } = opened;
    await useConnections(opened, 3);
    await cutOff(opened, 'all');
    await Promise.all([fleet.fresh(), fleet.fresh()]);
    assert.deepEqual([fleet.isInDoubt(), fleet.counts.loads], [false, 2]);
    await fleet.fresh();
    assert.equal(fleet.counts.loads, 2);
  }));

test('a connection that was opened after the break proves nothing', () =>
  withFleet(async (opened) => {
    const { database, fleet } = opened;
    await cutOff(opened, 'all');
    await useConnections(opened, 2);
    assert.equal(database.breaks.isInDoubt(), true);
    await cutOff(opened, 'the first');
    await sql`select 1`.execute(database.kysely);
    assert.equal(database.breaks.isInDoubt(), true, 'that it goes on since then says nothing of the first break');
    await fleet.fresh();
    assert.deepEqual([fleet.isInDoubt(), fleet.counts.loads], [false, 2]);
  }));

test('connections that the process ends itself, since they are old, are no reason to load the fleet', () =>
  withFleet(async ({ database, fleet }) => {
    await until('all are closed', () => database.connections().open === 0);
    await fleet.fresh();
    assert.deepEqual([database.breaks.count, fleet.counts.loads], [0, 1]);
  }, 1));

test('after all connections were cut off no claim is judged by data from before', () =>
  withFleet(async (opened) => {
    const { database, fleet, connection } = opened;
    const claims = openClaims(database, fleet, { conflictRetryCount: 10 });
    const claim = (amount: number) => claims.write(claimOn('p', randomUUID(), amount, { knownGeneration: null }));
    await claim(1);
    // As if the server had gone back to an earlier state, in which another claim got the same generation.
    await execute(
      connection,
      `set session_replication_role = replica; insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
       values (1, 0, 'other', 8)`,
    );
    await cutOff(opened, 'all');
    await assert.rejects(claim(5), (error) => error instanceof ClaimRefused && error.reason === 'invalid inventory');
    await claim(1);
  }));

test('a load after all connections were cut off offers the room of every tree, also of lost claims, to claims that wait', () =>
  withFleet(async (opened) => {
    const { database, fleet, connection } = opened;
    await openClaims(database, fleet, { conflictRetryCount: 10 }).write(
      claimOn('p', randomUUID(), 10, { knownGeneration: null }),
    );
    const freed: unknown[] = [];
    await fleet.fresh();
    fleet.watchRoom((which) => freed.push(which));
    // As if the server had gone back to a state before the claim: no log has it.
    await execute(connection, 'set session_replication_role = replica; delete from allocations');
    await cutOff(opened, 'all');
    assert.equal((await fleet.fresh()).byId.get(1)?.inventories[0]?.used, 0);
    assert.deepEqual(freed, ['all']);
  }));

test('a refresh that could not reach the server is followed by a load, although the run of the server is the same', () =>
  withFreshDatabase('postgresql', async ({ settings }) => {
    if (!('connection' in settings)) throw new Error('An outage needs a PostgreSQL server.');
    const url = new URL(settings.connection);
    const serverPort = Number(url.port);
    const address = await openSwitch(serverPort);
    url.port = String(address.port);
    const database = await openDatabase({ ...settings, connection: url.href, maxLifetimeSeconds: 1 });
    try {
      const fleet = await openFleet(database);
      // So that none breaks. The one that has read the fleet is idle for ten seconds before.
      await until('all connections are closed', async () => {
        const { rows } = await execute(settings.connection, placementConnections);
        return rows.length === 0;
      });
      address.lead(1);
      await assert.rejects(fleet.fresh());
      address.lead(serverPort);
      await fleet.fresh();
      assert.deepEqual([fleet.counts.loads, database.breaks.count], [2, 0]);
      await fleet.fresh();
      assert.equal(fleet.counts.loads, 2);
    } finally {
      await database.close();
      address.close();
    }
  }));
