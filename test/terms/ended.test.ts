/** A term that has ended, of a consumer that is not removed yet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
