/** Which rows other transactions have locked: claims and deletions ask this after a lock was refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLockRefused } from '../../db/engine/failures.ts';
import { briefWait } from '../../db/engine/slow_lane.ts';
import {
  awaitConsumer,
  awaitProvider,
  awaitTables,
  findLockedProviders,
  findLockedRows,
  tablesOfClaims,
  tablesOfDeletions,
} from '../../db/statements/locked_rows.ts';
import { untilWaiting, withTwoConnections } from './two_connections.ts';

const wanted = { providers: ['rp1', 'rp2', 'unknown'], consumers: ['kept', 'free', 'taken from', 'rp2'] };
const consumers = `insert into consumers (uuid, project_id, user_id, generation)
    values ('kept', 1, 1, 1), ('free', 1, 1, 1), ('taken from', 1, 1, 1), ('rp2', 1, 1, 1);
  insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
    values (1, 0, 'free', 1), (1, 0, 'taken from', 1)`;

test('rows that another transaction has locked are found, and no others', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(consumers);
    await other.query(`begin;
      select from resource_providers where uuid in ('rp1', 'rp3') for no key update;
      update consumers set generation = 2 where uuid = 'kept';
      select from allocations where consumer_id = 'taken from' for update`);
    const locked = { providers: ['rp1'], consumers: ['kept', 'taken from'] };
    assert.deepEqual(await findLockedRows(database, wanted, tablesOfClaims), locked);
    assert.deepEqual(await findLockedProviders(database, [1, 2, 9]), [1]);
    await other.query('rollback');
    assert.deepEqual(await findLockedRows(database, wanted, tablesOfClaims), { providers: [], consumers: [] });
    assert.deepEqual(await findLockedProviders(database, [1, 2, 9]), []);
  });
});

for (const table of ['allocations', 'consumers', 'resource_providers', 'provider_changes']) {
  test(`if ${table} is locked as a whole, as for an index, the table is found`, async () => {
    await withTwoConnections(async ({ database, other }) => {
      await other.query(`begin; lock table ${table} in share mode`);
      assert.equal(await findLockedRows(database, wanted, tablesOfClaims), 'tables');
      await assert.rejects(awaitTables(tablesOfClaims)(database, briefWait), isLockRefused);
      await other.query('commit');
      await awaitTables(tablesOfClaims)(database, briefWait);
    });
  });
}

for (const table of ['projects', 'users', 'consumer_types']) {
  test(`if all of ${table} is locked, claims wait for it and deletions do not`, async () => {
    await withTwoConnections(async ({ database, other }) => {
      await other.query(`begin; lock table ${table} in access exclusive mode`);
      assert.equal(await findLockedRows(database, wanted, tablesOfClaims), 'tables');
      await assert.rejects(awaitTables(tablesOfClaims)(database, briefWait), isLockRefused);
      assert.notEqual(await findLockedRows(database, wanted, tablesOfDeletions), 'tables');
      await awaitTables(tablesOfDeletions)(database, briefWait);
      await other.query('commit');
      await awaitTables(tablesOfClaims)(database, briefWait);
    });
  });
}

const locks = [
  {
    what: 'a provider',
    lock: `update resource_providers set name = 'x' where uuid = 'rp1'`,
    wait: awaitProvider('rp1'),
  },
  { what: 'a consumer', lock: `select from consumers where uuid = 'kept' for update`, wait: awaitConsumer('kept') },
  {
    what: 'an allocation',
    lock: `update allocations set used = 2 where consumer_id = 'taken from'`,
    wait: awaitConsumer('taken from'),
  },
];
for (const { what, lock, wait } of locks) {
  test(`the wait for ${what} ends after its time limit, or with the transaction that holds the lock`, async () => {
    await withTwoConnections(async ({ database, other }) => {
      await other.query(consumers);
      await other.query(`begin; ${lock}`);
      await assert.rejects(wait(database, briefWait), isLockRefused);
      const waited = wait(database, { lockTimeoutMs: 60_000, isSlow: true });
      await untilWaiting(other);
      await other.query('commit');
      await waited;
    });
  });
}
