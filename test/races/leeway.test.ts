/**
 * What other writers may do to a provider after a claim was judged and before it is written: claim on it, too, if there
 * is still room.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FleetSnapshot, readFleetSnapshot, snapshotParts } from '../../db/fleet/change_log.ts';
import { pruneChanges } from '../../db/fleet/prune_changes.ts';
import { readConsumers } from '../../db/statements/claims/read_allocations.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { judge } from '../../src/claims/judge.ts';
import { roomsOf } from '../../src/claims/judge_batch.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { byQuery } from '../placing/by_query.ts';
import { claimOn } from '../support/claims.ts';
import { claim } from './judged_claim.ts';
import { type TwoConnections, whileOther, withTwoConnections } from './two_connections.ts';

const ours = claim(['ours']);
const bump = 'update resource_providers set generation = generation + 1 where id = 1';
const otherClaim = (used: number, consumer = 'theirs') => [
  bump,
  `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, '${consumer}', ${used})`,
];

const now = ({ database }: TwoConnections): Promise<FleetSnapshot> => readFleetSnapshot(database.kysely);

/** Writes a claim that leaves so much room and was judged at a moment. @returns the guard that failed, if any */
async function write({ database }: TwoConnections, since: FleetSnapshot, room: number, known: readonly string[] = []) {
  const rooms = [{ providerId: 1, classId: 0, room }];
  const leeway = { since, known, rooms };
  const { lost, isContested } = await writeClaims(database, [ours], { judgedOn: since, leeway });
  return { lost: lost[0], isContested };
}

async function usage({ other }: TwoConnections): Promise<number> {
  const { rows } = await other.query(
    'select sum(used)::integer as used from allocations where resource_provider_id = 1',
  );
  return rows[0].used;
}

test('a claim that waited for another claim on its provider is written, too', async () => {
  await withTwoConnections(async (connections) => {
    const since = await now(connections);
    const written = await whileOther(connections, otherClaim(3), () => write(connections, since, 3));
    assert.deepEqual(written, { lost: undefined, isContested: true });
    assert.equal(await usage(connections), 5);
    const { rows } = await connections.other.query('select generation from resource_providers where id = 1');
    assert.deepEqual(rows, [{ generation: 7 }]);
  });
});

test('leeway fails if the other claim took more than the room that was left', async () => {
  await withTwoConnections(async (connections) => {
    const since = await now(connections);
    const written = await whileOther(connections, otherClaim(3), () => write(connections, since, 2));
    assert.deepEqual(written, { lost: 'provider', isContested: true });
    assert.equal(await usage(connections), 3);
  });
});

test('amounts that other claims took and freed are added up, and known ones are not counted again', async () => {
  await withTwoConnections(async (connections) => {
    const { other } = connections;
    const since = await now(connections);
    for (const statement of otherClaim(6)) await other.query(statement);
    await other.query(`delete from allocations where consumer_id = 'theirs'`);
    await other.query('begin');
    for (const statement of otherClaim(4, 'known')) await other.query(statement);
    const { rows } = await other.query('select pg_current_xact_id()::text as xid');
    await other.query('commit');
    assert.equal((await write(connections, since, 3)).lost, 'provider');
    assert.equal((await write(connections, since, 0, [rows[0].xid])).lost, undefined);
    assert.equal(await usage(connections), 6);
  });
});

const harms: Readonly<Record<string, string>> = {
  'another inventory': 'update inventories set total = 3 where resource_provider_id = 1',
  'another trait':
    'insert into resource_provider_traits (resource_provider_id, trait_id) select 1, min(id) from traits',
  'other names': 'update resource_classes set updated_at = created_at where id = 0',
  'a truncated table': 'truncate resource_provider_aggregates',
  'a log that was pruned': 'update provider_changes_horizon set xid = pg_current_xact_id()',
};
for (const [harm, statement] of Object.entries(harms)) {
  test(`leeway fails after ${harm}`, async () => {
    await withTwoConnections(async (connections) => {
      const since = await now(connections);
      const written = await whileOther(connections, [bump, statement], () => write(connections, since, 8));
      assert.deepEqual(written, { lost: 'provider', isContested: true });
      // After it is judged again, with the current data, it is written.
      const later = { ...ours, providers: [{ providerId: 1, generation: 6, bump: 1 }] };
      const { lost } = await writeClaims(connections.database, [later], { judgedOn: await now(connections) });
      assert.deepEqual(lost, [undefined]);
    });
  });
}

for (const [change, statement] of Object.entries({
  changed: 'update inventories set total = 9 where resource_provider_id = 1',
  deleted: 'delete from inventories where resource_provider_id = 1',
  truncated: 'truncate inventories',
})) {
  test(`the guard fails after inventories were ${change}, even at the same generation, with leeway and without`, async () => {
    await withTwoConnections(async (connections) => {
      const { database, other } = connections;
      const since = await now(connections);
      await other.query(statement);
      assert.deepEqual(await write(connections, since, 8), { lost: 'provider', isContested: false });
      assert.deepEqual((await writeClaims(database, [ours], { judgedOn: since })).lost, ['provider']);
      assert.deepEqual((await writeClaims(database, [ours], { judgedOn: await now(connections) })).lost, [undefined]);
    });
  });
}

test('leeway fails after a change of inventories that was open when the claim was judged, but not while it is open', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query('begin');
    await other.query('update inventories set total = 9 where resource_provider_id = 1');
    const since = await now(connections);
    assert.deepEqual((await writeClaims(database, [ours], { judgedOn: since })).lost, [undefined]);
    await other.query('commit');
    const second = claim(['second']);
    const asBefore = { ...second, providers: [{ providerId: 1, generation: 6, bump: 1 }] };
    assert.deepEqual((await writeClaims(database, [asBefore], { judgedOn: since })).lost, ['provider']);
  });
});

test('leeway fails if changes since the claim was judged may be pruned, but not after changes of other providers', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    const since = await now(connections);
    await other.query('update inventories set total = 9 where resource_provider_id = 2');
    await other.query(
      'insert into resource_provider_traits (resource_provider_id, trait_id) select 2, min(id) from traits',
    );
    assert.deepEqual((await writeClaims(database, [ours], { judgedOn: since })).lost, [undefined]);
    await pruneChanges(database, snapshotParts((await now(connections)).pgSnapshot).xmax);
    const second = { ...claim(['second']), providers: [{ providerId: 1, generation: 6, bump: 1 }] };
    assert.deepEqual((await writeClaims(database, [second], { judgedOn: since })).lost, ['provider']);
  });
});

test('leeway fails if the provider was deleted, and in another run of the server', async () => {
  await withTwoConnections(async (connections) => {
    const since = await now(connections);
    assert.equal((await write(connections, { ...since, serverRun: 'another' }, 8)).lost, 'provider');
    const deletion = [
      'delete from inventories where resource_provider_id = 1',
      'delete from resource_providers where id in (1, 3)',
    ];
    const written = await whileOther(connections, deletion, () => write(connections, since, 8));
    assert.equal(written.lost, 'provider');
  });
});

for (const how of ['by query', 'as allocations']) {
  test(`a claim that keeps more than the capacity is not written beside one that takes something: ${how}`, async () => {
    await withTwoConnections(async (connections) => {
      const { database, other } = connections;
      await other.query(`update inventories set total = 6 where resource_provider_id = 1;
        delete from inventories where resource_provider_id = 2;
        insert into consumers (uuid, project_id, user_id, generation) values ('ours', 1, 1, 1);
        insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
          values (1, 0, 'ours', 4), (1, 0, 'theirs', 1), (1, 0, 'others', 3)`);
      const keeping = how === 'by query' ? byQuery(['ours'], 'resources=VCPU:4') : claimOn('rp1', 'ours', 4);
      const rewritten = { ...keeping, consumers: keeping.consumers.map((each) => ({ ...each, knownGeneration: 1 })) };
      const fleet = await openFleet(database);
      const states = await readConsumers(database, ['ours'], false);
      const { usageChanges, ...write } = judge(fleet.known, rewritten, states);
      const leeway = { since: fleet.snapshot, known: fleet.ownWrites, rooms: roomsOf(fleet.known, [{ usageChanges }]) };
      const lostBeside = async (statement: string) => {
        const writing = () => writeClaims(database, [write], { judgedOn: fleet.snapshot, leeway });
        return (await whileOther(connections, [bump, statement], writing)).lost;
      };
      const taken = `update allocations set used = used + 1 where consumer_id = 'theirs'`;
      assert.deepEqual(await lostBeside(taken), ['provider']);
      const freed = `delete from allocations where consumer_id in ('theirs', 'others')`;
      assert.deepEqual(await lostBeside(freed), [undefined]);
      assert.equal(await usage(connections), 4);
    });
  });
}

test('two processes that claim on one provider lose no race, and fill it to the last unit', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query('update inventories set total = 600, max_unit = 600 where resource_provider_id = 1');
    let retries = 0;
    const processes = await Promise.all(
      [1, 2].map(async () =>
        openClaims(database, await openFleet(database), { conflictRetryCount: 3, onRetry: () => (retries += 1) }),
      ),
    );
    // Each writer sends its next claim when the last one is written, so batches of both run all the time.
    let sent = 0;
    const writer = async (claims: (typeof processes)[number]): Promise<void> => {
      while (sent < 600) {
        await claims.write(claimOn('rp1', `consumer ${sent++}`, 1, { knownGeneration: null }));
      }
    };
    await Promise.all(processes.flatMap((claims) => [writer(claims), writer(claims), writer(claims), writer(claims)]));
    const { rows } = await other.query(
      'select sum(used)::integer as used from allocations where resource_provider_id = 1',
    );
    assert.deepEqual(rows, [{ used: 600 }]);
    assert.ok(retries < 60, `${retries} of 600 claims were judged again`);
  });
});
