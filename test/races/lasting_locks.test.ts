/** Which rows are locked by somebody who keeps them, as claims are told that waited for them in vain. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasSqlstate, sqlstate } from '../../db/sqlstate.ts';
import { findLastingLocks } from '../../db/statements/lasting_locks.ts';
import { withTwoConnections } from './two_connections.ts';

const claimed = { providers: new Set(['rp1', 'rp2', 'unknown']), consumers: new Set(['kept', 'free', 'rp2']) };
const consumers = `insert into consumers (uuid, project_id, user_id, generation)
  values ('kept', 1, 1, 1), ('free', 1, 1, 1), ('rp2', 1, 1, 1)`;

test('rows of either table that one transaction keeps are found, and no others', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(consumers);
    await other.query(`begin;
      select from resource_providers where uuid in ('rp1', 'rp3') for no key update;
      update consumers set generation = 2 where uuid = 'kept'`);
    const locked = await findLastingLocks(database, claimed);
    assert.deepEqual(locked, { providers: new Set(['rp1']), consumers: new Set(['kept']) });
    await other.query('rollback');
    const free = await findLastingLocks(database, claimed, () => assert.fail('there is nothing to pause for'));
    assert.deepEqual(free, { providers: new Set(), consumers: new Set() });
  });
});

test('a row that is locked again and again, for a moment each time, is not found', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const lock = `begin; select from resource_providers where uuid = 'rp1' for no key update`;
    await other.query(lock);
    const locked = await findLastingLocks(database, claimed, () => other.query(`commit; ${lock}`));
    assert.deepEqual(locked.providers, new Set());
  });
});

for (const table of ['allocations', 'consumers', 'resource_providers', 'provider_changes']) {
  test(`where ${table} is locked as a whole, as for an index, it throws soon`, async () => {
    await withTwoConnections(async ({ database, other }) => {
      await other.query(`begin; lock table ${table} in share mode`);
      await assert.rejects(findLastingLocks(database, claimed), (error) =>
        hasSqlstate(error, sqlstate.lockNotAvailable),
      );
    });
  });
}
