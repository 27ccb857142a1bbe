/** A term that has ended, of a consumer that is not removed yet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import { setTerm } from '../../db/statements/consumers/set_term.ts';
import { withTwoConnections } from '../races/two_connections.ts';

test('a term that expired after the consumer was read is neither renewed nor removed', () =>
  withTwoConnections(async ({ database, other }) => {
    await other.query(`insert into consumers (id, uuid, project_id, user_id, generation) values (1, 'c', 1, 1, 4)`);
    const holder = { uuid: 'c', id: 1, generation: 4, allocations: undefined };
    const endOf = async (): Promise<Date | undefined> =>
      (await other.query('select expires_at from consumer_terms')).rows[0]?.expires_at;
    assert.notEqual(await setTerm(database, holder, 3600), 'changed');
    await other.query(`update consumer_terms set expires_at = now() - interval '1 ms'`);
    const end = await endOf();
    for (const seconds of [3600, null]) {
      assert.equal(await setTerm(database, holder, seconds), 'changed');
      assert.deepEqual(await endOf(), end);
    }
  }));

test('a term whose consumer is gone is deleted, but not that of a consumer which another transaction has locked', () =>
  withTwoConnections(async ({ database, other }) => {
    // As programs leave them that write with `session_replication_role = replica`: without triggers.
    await other.query(`insert into consumers (id, uuid, project_id, user_id, generation) values (1, 'locked', 1, 1, 4);
      insert into consumer_terms (consumer_id, generation, expires_at)
        values (1, 4, now() - interval '1 s'), (2, 1, now() - interval '1 s'), (3, 1, now() + interval '1 hour')`);
    const terms = async (): Promise<readonly number[]> =>
      (await other.query('select consumer_id from consumer_terms order by 1')).rows.map((row) => row.consumer_id);
    await other.query(`begin; select from consumers where uuid = 'locked' for update`);
    assert.deepEqual((await removeEnded(database, firstPosition, 10)).removed, []);
    await other.query('commit');
    assert.deepEqual(await terms(), [1, 3]);
    const { removed } = await removeEnded(database, firstPosition, 10);
    assert.deepEqual(
      removed.map(({ uuid }) => uuid),
      ['locked'],
    );
    assert.deepEqual(await terms(), [3]);
  }));
