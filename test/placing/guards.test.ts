/** What others may do after a claim by query was judged and before it is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readMoment } from '../../db/fleet/change_log.ts';
import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { claim } from '../races/judged_claim.ts';
import { type TwoConnections, whileOther, withTwoConnections } from '../races/two_connections.ts';

const [ours, theirs] = ['aaaaaaaa-0000-4000-8000-000000000001', 'bbbbbbbb-0000-4000-8000-000000000002'];

/** A claim on provider 1 that relied on provider 3 as well, and on their consumer having something of some providers. */
const placement = (providerIds: readonly number[] = []): ClaimWrite => ({
  ...claim([ours]),
  reliedOn: [1, 3],
  neighbours: [{ uuid: theirs, providerIds }],
  relatedConsumers: [ours, theirs],
});

async function lostGuard({ database }: TwoConnections, write: ClaimWrite, change: () => Promise<unknown>) {
  const judgedOn = await readMoment(database.kysely);
  await change();
  const { lost } = await writeClaims(database, [write], { judgedOn });
  return lost[0];
}

const wholeChanges = {
  'a trait that it gets':
    'insert into resource_provider_traits (resource_provider_id, trait_id) select 3, min(id) from traits',
  'an aggregate that it gets': `insert into placement_aggregates (id, uuid) values (1, 'some');
    insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (3, 1)`,
  'another parent': 'update resource_providers set parent_provider_id = 2, root_provider_id = 2 where id = 3',
  'an inventory': `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
    allocation_ratio) values (3, 0, 1, 0, 1, 1, 1, 1)`,
  'a table that is emptied': 'truncate resource_provider_traits',
};

for (const [name, statement] of Object.entries(wholeChanges)) {
  test(`a claim is not written on a provider that changed though nothing is taken of it: ${name}`, async () => {
    await withTwoConnections(async (connections) => {
      const change = () => connections.other.query(statement);
      assert.equal(await lostGuard(connections, placement(), change), 'provider');
      // A claim that relied on nothing but what it takes is written.
      assert.equal(await lostGuard(connections, claim([ours]), async () => {}), undefined);
    });
  });
}

const otherChanges = {
  'its generation': 'update resource_providers set generation = generation + 1 where id = 3',
  'an allocation': `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (3, 0, 'other', 1)`,
  'a trait of another provider':
    'insert into resource_provider_traits (resource_provider_id, trait_id) select 2, min(id) from traits',
  'a new trait': `insert into traits (name) values ('CUSTOM_NEW')`,
};

for (const [name, statement] of Object.entries(otherChanges)) {
  test(`a claim is written though this changed that it did not rely on: ${name}`, async () => {
    await withTwoConnections(async (connections) => {
      assert.equal(await lostGuard(connections, placement(), () => connections.other.query(statement)), undefined);
    });
  });
}

test('a claim whose neighbour has another provider by now is not written', async () => {
  await withTwoConnections(async (connections) => {
    const move = () => connections.other.query(theirAllocation);
    assert.equal(await lostGuard(connections, placement(), move), 'consumer');
    const nothing = async () => {};
    assert.equal(await lostGuard(connections, placement([2, 3]), nothing), 'consumer');
    assert.equal(await lostGuard(connections, placement([2]), nothing), undefined);
  });
});

test('of two claims that name each other the later one waits and sees what the earlier one has written', async () => {
  await withTwoConnections(async (connections) => {
    const { database } = connections;
    const judgedOn = await readMoment(database.kysely);
    // What the statement of another process does that places their consumer, up to its commit.
    const locked = ['select pg_advisory_xact_lock(1430000, 2)', theirAllocation];
    const { lost } = await whileOther(connections, locked, () => writeClaims(database, [placement()], { judgedOn }));
    assert.deepEqual(lost, ['consumer']);
  });
});

const theirAllocation = `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (2, 0, '${theirs}', 1)`;
