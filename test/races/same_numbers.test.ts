/**
 * A number that a row has again proves nothing. An UPDATE finds the row in the snapshot of its statement: if the row had another number
 * there, nothing of the statement is written.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasSqlstate, sqlstate } from '../../db/engine/failures.ts';
import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { claim } from './judged_claim.ts';
import { type TwoConnections, whileOther, withTwoConnections } from './two_connections.ts';

const provider = { another: generationOf('resource_providers', 7), again: generationOf('resource_providers', 5) };
const consumer = { another: generationOf('consumers', 2), again: generationOf('consumers', 1) };

function generationOf(table: string, generation: number): string {
  return `update ${table} set generation = ${generation} where uuid in ('rp1', 'c')`;
}

const madeConsumer = `insert into consumers (id, uuid, project_id, user_id, generation) values (9, 'c', 1, 1, 1);
  insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (2, 0, 'c', 1)`;

const rewrite: ClaimWrite = claim(['c'], 1);
const removal: ClaimWrite = {
  ...rewrite,
  providers: [],
  consumers: rewrite.consumers.map((each) => ({ ...each, allocations: [] })),
};

const contentOf = async ({ other }: TwoConnections) =>
  (
    await other.query(`select (select json_agg(p order by id) from resource_providers p) as providers,
      (select json_agg(c order by id) from consumers c) as consumers,
      (select json_agg(a order by id) from allocations a) as allocations`)
  ).rows;

const cases: readonly (readonly [name: string, write: ClaimWrite, numbers: typeof provider])[] = [
  ['a provider, of a new consumer', claim(['new']), provider],
  ['a provider, of a consumer that is there', rewrite, provider],
  ['a consumer that is rewritten', rewrite, consumer],
  ['a consumer that is removed', removal, consumer],
];

for (const [name, write, { another, again }] of cases) {
  test(`a claim is not written if a generation was restored to its value: ${name}`, async () => {
    await withTwoConnections(async (connections) => {
      const { database, other } = connections;
      await other.query(madeConsumer);
      await other.query(another);
      let theirs: unknown;
      await whileOther(connections, [again], async () => {
        theirs = await contentOf(connections);
        await assert.rejects(writeClaims(database, [claim(['beside']), write]), (error) =>
          hasSqlstate(error, sqlstate.serializationFailure),
        );
      });
      assert.deepEqual(await contentOf(connections), theirs);
    });
  });
}

test('a claim that met a restored generation is judged again, and written', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    let retries = 0;
    const onRetry = () => {
      retries += 1;
    };
    const fleet = await openFleet(database);
    const claims = openClaims(database, fleet, { conflictRetryCount: 1, onRetry });
    const present = async () =>
      (await other.query('select generation from resource_providers where id = 1')).rows[0].generation;
    // A statement waits for a lock for 20 ms only, so it may not be the one that waits for their commit.
    for (let attempt = 0; retries === 0; attempt += 1) {
      assert.ok(attempt < 100, 'no claim met such a generation');
      const known = await present();
      await fleet.fresh();
      await other.query(generationOf('resource_providers', known + 2));
      const again = generationOf('resource_providers', known);
      await whileOther(connections, [again], () => claims.write(claimOn('rp1', 'new', 2)));
      assert.equal(await present(), known + 1);
    }
    assert.equal(retries, 1);
  });
});
