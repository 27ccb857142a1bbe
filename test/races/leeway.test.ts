/** What others may do to a provider between the judgement of a claim and its writing: claim there too, as long as there is room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Moment, readMoment } from '../../db/statements/change_log.ts';
import { writeClaims } from '../../db/statements/write_claims.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { openFleet } from '../../src/fleet/keeper.ts';
import { claimOn } from './claim_on.ts';
import { claim } from './judged_claim.ts';
import { type TwoConnections, whileOther, withTwoConnections } from './two_connections.ts';

const ours = claim(['ours']);
const bump = 'update resource_providers set generation = generation + 1 where id = 1';
const otherClaim = (used: number, consumer = 'theirs') => [
  bump,
  `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, '${consumer}', ${used})`,
];

const now = ({ database }: TwoConnections): Promise<Moment> => readMoment(database.kysely);

/** Writes the claim, which leaves so much room, as judged at a moment. @returns the guard it lost, if it did */
async function write({ database }: TwoConnections, since: Moment, room: number, known: readonly string[] = []) {
  const rooms = [{ providerId: 1, classId: 0, room }];
  const { lost, isContested } = await writeClaims(database, [ours], since.serverRun, { since, known, rooms });
  return { lost: lost[0], isContested };
}

async function usage({ other }: TwoConnections): Promise<number> {
  const { rows } = await other.query(
    'select sum(used)::integer as used from allocations where resource_provider_id = 1',
  );
  return rows[0].used;
}

test('a claim that waited for another on its provider is written beside it', async () => {
  await withTwoConnections(async (connections) => {
    const since = await now(connections);
    const written = await whileOther(connections, otherClaim(3), () => write(connections, since, 3));
    assert.deepEqual(written, { lost: undefined, isContested: true });
    assert.equal(await usage(connections), 5);
    const { rows } = await connections.other.query('select generation from resource_providers where id = 1');
    assert.deepEqual(rows, [{ generation: 7 }]);
  });
});

test('it loses where the other took more than there was to spare', async () => {
  await withTwoConnections(async (connections) => {
    const since = await now(connections);
    const written = await whileOther(connections, otherClaim(3), () => write(connections, since, 2));
    assert.deepEqual(written, { lost: 'provider', isContested: true });
    assert.equal(await usage(connections), 3);
  });
});

test('what others took and gave back counts together, and what was known is not counted again', async () => {
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
  test(`it loses after ${harm}`, async () => {
    await withTwoConnections(async (connections) => {
      const since = await now(connections);
      const written = await whileOther(connections, [bump, statement], () => write(connections, since, 8));
      assert.deepEqual(written, { lost: 'provider', isContested: true });
      // Judged again, on what there is now, it is written.
      const later = { ...ours, providers: [{ providerId: 1, generation: 6, bump: 1 }] };
      assert.deepEqual((await writeClaims(connections.database, [later], since.serverRun)).lost, [undefined]);
    });
  });
}

test('it loses where the provider is gone, and on another run of the server', async () => {
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

test('two processes that claim on one provider lose no race, and fill it to the last unit', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query('update inventories set total = 600, max_unit = 600 where resource_provider_id = 1');
    let retries = 0;
    const processes = await Promise.all(
      [1, 2].map(async () =>
        openClaims(database, await openFleet(database), { conflictRetryCount: 3, onRetry: () => (retries += 1) }),
      ),
    );
    // Each writer sends its next claim when the last one is written, so that batches of both are under way all the time.
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
