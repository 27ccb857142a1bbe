/** What others may do after a claim by query was judged and before it is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFleetSnapshot } from '../../db/fleet/change_log.ts';
import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { readConsumers } from '../../db/statements/claims/read_allocations.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import type { ClaimRefused } from '../../src/claims/claim.ts';
import { judge } from '../../src/claims/judge.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { claim } from '../races/judged_claim.ts';
import { type TwoConnections, untilWaiting, whileOther, withTwoConnections } from '../races/two_connections.ts';
import { byQuery } from './by_query.ts';

const [ours, theirs] = ['aaaaaaaa-0000-4000-8000-000000000001', 'bbbbbbbb-0000-4000-8000-000000000002'];

/** A claim on provider 1 that relied on provider 3 as well, and on their consumer having something of some providers. */
const placement = (providerIds: readonly number[] = []): ClaimWrite => ({
  ...claim([ours]),
  reliedOn: [1, 3],
  affinity: [{ uuid: theirs, generation: null, recordId: null, providerIds }],
  relatedConsumers: [ours, theirs],
});

async function lostGuard({ database }: TwoConnections, write: ClaimWrite, change: () => Promise<unknown>) {
  const judgedOn = await readFleetSnapshot(database.kysely);
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
  'its deletion': 'delete from resource_providers where id = 3',
};

for (const [name, statement] of Object.entries(wholeChanges)) {
  test(`a claim is not written if a provider has changed that it relied on without taking from it: ${name}`, async () => {
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
  test(`a claim is written although data has changed that it did not rely on: ${name}`, async () => {
    await withTwoConnections(async (connections) => {
      assert.equal(await lostGuard(connections, placement(), () => connections.other.query(statement)), undefined);
    });
  });
}

test('a claim is not written if the consumer of its with has moved to another provider', async () => {
  await withTwoConnections(async (connections) => {
    const move = () => connections.other.query(theirAllocation);
    assert.equal(await lostGuard(connections, placement(), move), 'consumer');
    const nothing = async () => {};
    assert.equal(await lostGuard(connections, placement([2, 3]), nothing), 'consumer');
    assert.equal(await lostGuard(connections, placement([2]), nothing), undefined);
  });
});

test('a claim is not written where a move brings a consumer of its apart_from into the chosen tree', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`delete from inventories where resource_provider_id = 2;
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio) values (2, 1, 10, 0, 1, 10, 1, 1);
      insert into consumers (uuid, project_id, user_id, generation) values ('${theirs}', 1, 1, 1);
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (2, 1, '${theirs}', 1)`);
    const queried = byQuery([ours], `resources=VCPU:2&apart_from=${theirs}`);
    const fleet = await openFleet(database);
    const judged = async () => {
      const states = await readConsumers(database, [ours, theirs], true);
      const { usageChanges: _, placement: __, ...write } = judge(await fleet.fresh(), queried, states);
      return write;
    };
    const write = await judged();
    const { snapshot } = fleet;
    // Nothing of the chosen tree changes but its members, and the consumer has what it had.
    await other.query('update resource_providers set parent_provider_id = 1, root_provider_id = 1 where id = 2');
    const { lost } = await writeClaims(database, [write], { judgedOn: snapshot });
    assert.deepEqual(lost, ['provider']);
    await assert.rejects(judged, ({ reason }: ClaimRefused) => reason === 'no candidates');
  });
});

test('a claim that had to wait for a provider is not written if what it relied on changed meanwhile', async () => {
  for (const [name, statement] of Object.entries(wholeChanges)) {
    if (name === 'a table that is emptied') continue; // it has to wait for the table before it has a snapshot
    await withTwoConnections(async (connections) => {
      const { database } = connections;
      const judgedOn = await readFleetSnapshot(database.kysely);
      // As a move of a subtree: it holds the providers of both trees until its commit.
      const locked = ['select from resource_providers where id = 1 for no key update', statement];
      const { lost } = await whileOther(connections, locked, () => writeClaims(database, [placement()], { judgedOn }));
      assert.deepEqual(lost, ['provider'], name);
    });
  }
});

test('of two claims that name each other the later one waits and sees what the earlier one has written', async () => {
  await withTwoConnections(async (connections) => {
    const { database } = connections;
    const judgedOn = await readFleetSnapshot(database.kysely);
    // What the statement of another process does that places their consumer, up to its commit.
    const locked = ['select pg_advisory_xact_lock(1430000, 2)', theirAllocation];
    const { lost } = await whileOther(connections, locked, () => writeClaims(database, [placement()], { judgedOn }));
    assert.deepEqual(lost, ['consumer']);
  });
});

test('the locks of consumers that name each other are taken in one order, so that no claims deadlock', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const lock = (number: number) => other.query('select pg_advisory_xact_lock(1430000, $1)', [number]);
    // What the statement of another process does.
    await other.query('begin');
    await lock(1);
    const written = writeClaims(database, [{ ...placement(), relatedConsumers: [theirs, ours] }]);
    written.catch(() => {});
    await untilWaiting(other);
    await lock(2);
    await other.query('commit');
    assert.deepEqual((await written).lost, [undefined]);
  });
});

const theirAllocation = `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (2, 0, '${theirs}', 1)`;

test('a claim whose consumer was removed and made again with the same generation is not written', () =>
  withTwoConnections(async (connections) => {
    const { database, other } = connections;
    const made = await writeClaims(database, [claim([ours])]);
    assert.deepEqual(made.lost, [undefined]);
    const { rows } = await other.query('select id, generation from consumers');
    const [{ id, generation }] = rows;
    const [consumer] = claim([ours], generation).consumers;
    assert.ok(consumer);
    const later = (recordId: number): ClaimWrite => ({
      ...claim([]),
      providers: [{ providerId: 1, generation: 6, bump: 1 }],
      consumers: [{ ...consumer, recordId }],
    });
    const makeAgain = () =>
      other.query(`delete from consumers; insert into consumers (uuid, project_id, user_id, generation)
        values ('${ours}', 1, 1, ${generation})`);
    assert.equal(await lostGuard(connections, later(id), makeAgain), 'consumer');
    const { rows: present } = await other.query('select id from consumers');
    assert.equal(await lostGuard(connections, later(present[0].id), async () => {}), undefined);
  }));

test('a claim whose query names a class or a trait that has another name by now is not written', () =>
  withTwoConnections(async (connections) => {
    const { other } = connections;
    for (const [key, table] of [
      ['customClasses', 'resource_classes'],
      ['customTraits', 'traits'],
    ] as const) {
      const { rows } = await other.query(`insert into ${table} (id, name) values (20000, 'CUSTOM_A') returning id`);
      const [{ id }] = rows;
      const write: ClaimWrite = { ...claim([ours]), [key]: [{ id, name: 'CUSTOM_A' }] };
      const rename = () => other.query(`update ${table} set name = 'CUSTOM_B' where id = ${id}`);
      assert.equal(await lostGuard(connections, write, rename), 'name', table);
      assert.equal(
        await lostGuard(connections, write, () => other.query(`delete from ${table} where id = ${id}`)),
        'name',
      );
    }
  }));
