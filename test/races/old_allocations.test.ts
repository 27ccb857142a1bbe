/**
 * Allocations without a consumer record (old data) have no row to lock. Their writers must still wait for each other.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasSqlstate, sqlstate } from '../../db/engine/failures.ts';
import type { ConsumerWrite } from '../../db/statements/claims/claim_write.ts';
import { deleteAllocations } from '../../db/statements/claims/delete_allocations.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { openDeletions } from '../../src/claims/deletions.ts';
import { type TwoConnections, whileOther, withTwoConnections } from './two_connections.ts';

const old = `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'old', 3)`;

/** Another client replaces the old allocations, and makes the record. */
const replacedByOther = [
  `insert into consumers (uuid, project_id, user_id, generation) values ('old', 1, 1, 1)`,
  `delete from allocations where consumer_id = 'old'`,
  `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (2, 0, 'old', 7)`,
];

const claim = (allocations: ConsumerWrite['allocations']) => ({
  providers: [{ providerId: 1, generation: 5, bump: 1 }],
  consumers: [
    {
      uuid: 'old',
      generation: null,
      hasOldAllocations: true,
      projectExternalId: 'project',
      userExternalId: 'user',
      consumerType: null,
      etag: null,
      allocations,
    },
  ],
  inventories: [],
});
const emptied = claim([]);
const rewritten = claim([{ providerId: 1, classId: 0, used: 4 }]);

async function stored({ other }: TwoConnections) {
  const { rows: consumers } = await other.query('select uuid, generation from consumers');
  const { rows: allocations } = await other.query(
    'select consumer_id, resource_provider_id as provider, used from allocations',
  );
  return { consumers, allocations };
}

const nothing = { consumers: [], allocations: [] };
const ofOther = {
  consumers: [{ uuid: 'old', generation: 1 }],
  allocations: [{ consumer_id: 'old', provider: 2, used: 7 }],
};
const isTaken = (error: unknown) => hasSqlstate(error, sqlstate.uniqueViolation);

test('old allocations are deleted, and no record stays', async () => {
  await withTwoConnections(async (connections) => {
    await connections.other.query(old);
    assert.deepEqual((await writeClaims(connections.database, [emptied])).lost, [undefined]);
    assert.deepEqual(await stored(connections), nothing);
    const { rows } = await connections.other.query('select generation from resource_providers where id = 1');
    assert.deepEqual(rows, [{ generation: 6 }]);

    await connections.other.query(old);
    assert.deepEqual(await deleteAllocations(connections.database, ['old']), new Map([['old', 1]]));
    assert.deepEqual(await stored(connections), nothing);
    assert.deepEqual(await deleteAllocations(connections.database, ['old']), new Map());
  });
});

test('a claim that fails because of its provider leaves no record', async () => {
  await withTwoConnections(async (connections) => {
    await connections.other.query(old);
    await connections.other.query('update resource_providers set generation = 6 where id = 1');
    for (const each of [emptied, rewritten]) {
      assert.deepEqual((await writeClaims(connections.database, [each])).lost, ['provider']);
    }
    assert.deepEqual(await stored(connections), {
      consumers: [],
      allocations: [{ consumer_id: 'old', provider: 1, used: 3 }],
    });
  });
});

test('a claim fails if another claim has just replaced them', async () => {
  await withTwoConnections(async (connections) => {
    await connections.other.query(old);
    for (const statement of replacedByOther) await connections.other.query(statement);
    await assert.rejects(writeClaims(connections.database, [rewritten]), isTaken);
    assert.deepEqual((await writeClaims(connections.database, [emptied])).lost, ['consumer']);
    assert.deepEqual(await stored(connections), ofOther);
  });
});

test('a claim fails if another claim replaces the old allocations at the same time, or before it', async () => {
  await withTwoConnections(async (connections) => {
    await connections.other.query(old);
    const rewriting = async () => (await writeClaims(connections.database, [rewritten])).lost;
    await assert.rejects(whileOther(connections, replacedByOther, rewriting), isTaken);
    assert.deepEqual(await stored(connections), ofOther);

    await connections.other.query('delete from consumers');
    await connections.other.query('delete from allocations');
    await connections.other.query(old);
    const emptying = async () => (await writeClaims(connections.database, [emptied])).lost;
    assert.deepEqual(await whileOther(connections, replacedByOther, emptying), [undefined]);
    assert.deepEqual(await stored(connections), ofOther);
  });
});

test('a claim that removes them removes a record that the online data migration makes at the same time, too', async () => {
  await withTwoConnections(async (connections) => {
    await connections.other.query(old);
    const made = [
      `select id from allocations for key share`,
      `insert into consumers (uuid, project_id, user_id, generation) values ('old', 1, 1, 0)`,
    ];
    const ours = async () => (await writeClaims(connections.database, [emptied])).lost;
    assert.deepEqual(await whileOther(connections, made, ours), [undefined]);
    assert.deepEqual(await stored(connections), nothing);
  });
});

test('a claim that removes them loses against a client that creates a record for them at the same time', async () => {
  await withTwoConnections(async (connections) => {
    await connections.other.query(old);
    const made = [`select id from allocations for key share`, ...replacedByOther.slice(0, 1)];
    const ours = async () => (await writeClaims(connections.database, [emptied])).lost;
    await assert.rejects(whileOther(connections, made, ours), isTaken);
    assert.deepEqual((await writeClaims(connections.database, [emptied])).lost, ['consumer']);
    assert.deepEqual(await stored(connections), {
      consumers: [{ uuid: 'old', generation: 1 }],
      allocations: [{ consumer_id: 'old', provider: 1, used: 3 }],
    });
  });
});

test('a DELETE waits for a writer that replaces them, and deletes the result', async () => {
  await withTwoConnections(async (connections) => {
    await connections.other.query(old);
    const ours = async () => (await deleteAllocations(connections.database, ['old'])).get('old');
    assert.equal(await whileOther(connections, replacedByOther, ours), 1);
    assert.deepEqual(await stored(connections), nothing);
  });
});

test('a DELETE waits for a writer that only makes the record, and leaves none', async () => {
  await withTwoConnections(async (connections) => {
    await connections.other.query(old);
    const ours = async () => (await deleteAllocations(connections.database, ['old'])).get('old');
    const made = [`select id from allocations for key share`, ...replacedByOther.slice(0, 1)];
    assert.equal(await whileOther(connections, made, ours), 1);
    assert.deepEqual(await stored(connections), nothing);
  });
});

test('a DELETE of another consumer, sent with one of old allocations that are locked, says that it was done', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(old);
    await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('new', 1, 1, 1)`);
    await other.query(old.replace("'old'", "'new'"));
    await other.query(`begin; select id from allocations where consumer_id = 'old' for update`);
    const deletions = openDeletions(database);
    // The first one goes alone; the others come meanwhile, and go together.
    const [none, recorded, unrecorded] = ['none', 'new', 'old'].map((uuid) => deletions.delete(uuid));
    assert.equal(await none, 0);
    assert.equal(await recorded, 1);
    await other.query('commit');
    assert.equal(await unrecorded, 1);
    assert.deepEqual(await stored({ database, other }), nothing);
  });
});
