/** Somebody else holds a lock for long: what does not concern the same goes on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openClaims } from '../../src/claims/claims.ts';
import { openDeletions } from '../../src/claims/deletions.ts';
import { openFleet } from '../../src/fleet/keeper.ts';
import { until } from '../until.ts';
import { claimOn } from './claim_on.ts';
import { untilWaiting, withTwoConnections } from './two_connections.ts';

test('claims on other providers are written beside those that wait for a lock, which are written after it', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    const written: string[] = [];
    const write = (uuid: string, provider: string): Promise<void> =>
      claims.write(claimOn(provider, uuid, 1)).then(() => void written.push(uuid));

    await other.query('begin; select from resource_providers where id = 1 for update');
    const waiting = [write('first', 'rp1')];
    await untilWaiting(other);
    // What came meanwhile: one that would wait, too, and one for a consumer that the first concerns.
    waiting.push(write('second', 'rp1'), write('first', 'rp2'));
    await Promise.all(Array.from({ length: 5 }, (_, place) => write(`free ${place}`, 'rp2')));
    assert.deepEqual(written, ['free 0', 'free 1', 'free 2', 'free 3', 'free 4']);

    await other.query('commit');
    await Promise.all(waiting);
    assert.deepEqual(written.slice(5).toSorted(), ['first', 'first', 'second']);
    const { rows } = await other.query(
      `select consumer_id as consumer, resource_provider_id as provider from allocations
       where consumer_id in ('first', 'second') order by 1`,
    );
    assert.deepEqual(rows, [
      { consumer: 'first', provider: 2 },
      { consumer: 'second', provider: 1 },
    ]);
  });
});

test('several locks hold up no more than what they are for', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`insert into resource_providers (id, uuid, name, generation, root_provider_id)
        select n, 'host ' || n, 'host ' || n, 0, n from generate_series(10, 19) as n;
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio) select n, 0, 10, 0, 1, 10, 1, 1 from generate_series(10, 19) as n`);
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query('begin; select from resource_providers where id between 10 and 12 for update');
    const waiting: Promise<void>[] = [];
    for (const host of [10, 11, 12]) {
      waiting.push(claims.write(claimOn(`host ${host}`, `on ${host}`, 1)));
      await untilWaiting(other, waiting.length);
    }
    await claims.write(claimOn('host 19', 'free', 1));
    const { rows } = await other.query('select consumer_id as consumer from allocations');
    assert.deepEqual(rows, [{ consumer: 'free' }]);
    await other.query('commit');
    await Promise.all(waiting);
  });
});

test('of claims that were sent together only those wait that need what somebody holds', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query('begin; select from resource_providers where id = 1 for update');
    const written: string[] = [];
    const write = (uuid: string, provider: string): Promise<void> =>
      claims.write(claimOn(provider, uuid, 1)).then(() => void written.push(uuid));
    // The first goes by itself, since nobody writes yet, and the others together.
    const free = ['free 0', 'free 1', 'free 2', 'free 3'];
    const all = [...free.slice(0, 2).map((uuid) => write(uuid, 'rp2')), write('held', 'rp1'), write('held too', 'rp1')];
    await Promise.all([...all.slice(0, 2), ...free.slice(2).map((uuid) => write(uuid, 'rp2'))]);
    assert.deepEqual(written.toSorted(), free);
    await other.query('commit');
    await Promise.all(all);
    assert.deepEqual(written.slice(4).toSorted(), ['held', 'held too']);
  });
});

test('of deletions that were sent together only the one waits whose consumer somebody holds', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    for (const uuid of ['a', 'b', 'c']) await claims.write(claimOn('rp2', uuid, 1));
    await other.query(`begin; select from consumers where uuid = 'b' for update`);
    const deletions = openDeletions(database);
    const deleted = Promise.all(['a', 'b', 'c'].map((uuid) => deletions.delete(uuid)));
    await until('the others are gone', async () => {
      const consumers = await database.kysely.selectFrom('consumers').select('uuid').execute();
      return consumers.map(({ uuid }) => uuid).join() === 'b';
    });
    await other.query('commit');
    assert.deepEqual(await deleted, [1, 1, 1]);
  });
});
