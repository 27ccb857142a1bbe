/** A service is deleted or retired while another connection writes something that keeps it or frees it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { deleteService, retireServices } from '../../db/statements/services/delete_service.ts';
import { type TwoConnections, untilWaiting, whileOther, withTwoConnections } from '../races/two_connections.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';

const uuid = '00000000-0000-4000-8000-000000000001';
const cell = `insert into cells (id, uuid, name) values (1, 'cell', 'default')`;
/** The compute service of host rp1. Its last heartbeat was two minutes ago. */
const silent = (ofUuid = uuid) => `insert into services (cell_id, id, uuid, host, "binary", last_seen_up)
  values (1, 1, '${ofUuid}', 'rp1', 'nova-compute', (now() at time zone 'utc') - interval '2 minutes')`;
const heartbeat = `update services set last_seen_up = now() at time zone 'utc'`;
/** A claim on the child of rp1. */
const claim = `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (3, 0, 'c', 1)`;

/** Calls back with a function that tells whether the service exists. */
const withService = (use: (connections: TwoConnections, isThere: () => Promise<boolean>) => Promise<void>) =>
  withTwoConnections(async (connections) => {
    const { other } = connections;
    for (const statement of [cell, silent()]) await other.query(statement);
    await use(connections, async () => (await other.query('select from services')).rowCount === 1);
  });

test('a service is not deleted if its host is claimed on while the deletion waits', async () => {
  await withService(async (connections, isThere) => {
    const deletion = () => deleteService(connections.database, { uuid });
    assert.equal(await whileOther(connections, [heartbeat, claim], deletion), 'hosting');
    assert.equal(await isThere(), true);
    // Allocations that are deleted while it waits do not keep the service.
    assert.equal(await whileOther(connections, [heartbeat, 'delete from allocations'], deletion), 'deleted');
    assert.equal(await isThere(), false);
  });
});

test('a service that is deleted and registered again while the deletion waits is a different service', async () => {
  await withService(async (connections, isThere) => {
    const anew = ['delete from services', silent('00000000-0000-4000-8000-000000000002')];
    assert.equal(await whileOther(connections, anew, () => deleteService(connections.database, { uuid })), 'gone');
    assert.equal(await isThere(), true);
  });
});

for (const [what, statements] of [
  ['sends a heartbeat', [heartbeat]],
  ['is claimed on', ['update services set topic = topic', claim]],
] as const) {
  test(`a silent service that ${what} in between is not retired`, async () => {
    await withService(async ({ database, other }, isThere) => {
      await other.query('begin');
      for (const statement of statements) await other.query(statement);
      const retiring = retireServices(database, 60);
      // It may wait for the other connection or skip the row: in both cases the service stays.
      await Promise.race([retiring, untilWaiting(other)]);
      await other.query('commit');
      assert.deepEqual(await retiring, []);
      assert.equal(await isThere(), true);
      assert.deepEqual(await retireServices(database, 60), []);
    });
  });
}

for (const engine of engines) {
  test(`a deletion does not take another service that has the same integer id on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        for (const statement of [cell, silent()]) await sql.raw(statement).execute(database.kysely);
        const another = '00000000-0000-4000-8000-000000000002';
        assert.equal(await deleteService(database, { uuid: another }), 'gone');
        assert.equal(await deleteService(database, { uuid }), 'deleted');
      } finally {
        await database.close();
      }
    });
  });
}
