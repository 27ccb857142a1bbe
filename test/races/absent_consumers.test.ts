/** A claim that names a consumer without a record and without allocations: it proves that there is none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasSqlstate, sqlstate } from '../../db/engine/failures.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { claim } from './judged_claim.ts';
import { type TwoConnections, whileOther, withTwoConnections } from './two_connections.ts';

/** A claim for the consumer `a`, with which the consumer `c` shall have nothing. */
const claimed = claim(['a', 'c']);
const [forA, forC] = claimed.consumers;
assert.ok(forA !== undefined && forC !== undefined);
const nothingForC = { ...claimed, consumers: [forA, { ...forC, allocations: [] }] };

const held = async ({ other }: TwoConnections) =>
  (await other.query('select consumer_id as consumer from allocations order by 1')).rows;
const records = async ({ other }: TwoConnections) => (await other.query('select uuid from consumers order by 1')).rows;

test('an empty claim for a consumer fails if another transaction creates that consumer', async () => {
  await withTwoConnections(async (connections) => {
    const ours = (mayExist: boolean) => async () =>
      (await writeClaims(connections.database, [nothingForC], { mayExist })).lost;
    const made = [`insert into consumers (uuid, project_id, user_id, generation) values ('c', 1, 1, 1)`];
    await assert.rejects(whileOther(connections, made, ours(false)), (error) =>
      hasSqlstate(error, sqlstate.uniqueViolation),
    );
    assert.deepEqual(await ours(true)(), ['consumer']);
    assert.deepEqual(await held(connections), []);
    await connections.other.query(`delete from consumers where uuid = 'c'`);
    assert.deepEqual(await ours(true)(), [undefined]);
    assert.deepEqual(await records(connections), [{ uuid: 'a' }]);
  });
});

test('an empty claim needs no existing project and user', async () => {
  await withTwoConnections(async (connections) => {
    const unknown = { ...forC, allocations: [], projectExternalId: 'unknown', userExternalId: 'unknown' };
    const { lost } = await writeClaims(connections.database, [{ ...claimed, consumers: [forA, unknown] }]);
    assert.deepEqual(lost, [undefined]);
    assert.deepEqual(await records(connections), [{ uuid: 'a' }]);
    const { rows } = await connections.other.query('select external_id as name from projects');
    assert.ok(!rows.some(({ name }) => name === 'unknown'));
  });
});
