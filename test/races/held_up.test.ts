/** Another transaction holds a lock for long: writes that do not need the locked rows continue. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database } from '../../db/engine/connect.ts';
import { isLockRefused } from '../../db/engine/failures.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { openDeletions } from '../../src/claims/deletions.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { until } from '../support/until.ts';
import { untilWaiting, withTwoConnections } from './two_connections.ts';

test('claims on other providers are written while claims wait for a lock; the waiting claims are written when it is free', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    const written: string[] = [];
    const write = (uuid: string, provider: string): Promise<void> =>
      claims.write(claimOn(provider, uuid, 1)).then(() => void written.push(uuid));

    await other.query('begin; select from resource_providers where id = 1 for update');
    const waiting = [write('first', 'rp1')];
    await untilWaiting(other);
    // Two claims that come in between: one needs the locked provider, too, and one has the consumer of the first claim.
    waiting.push(write('second', 'rp1'), write('first', 'rp2'));
    await Promise.all(Array.from({ length: 5 }, (_, index) => write(`free ${index}`, 'rp2')));
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

test('several locks delay only the claims that need them', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`insert into resource_providers (id, uuid, name, generation, root_provider_id)
        select n, 'host ' || n, 'host ' || n, 0, n from generate_series(10, 19) as n;
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio) select n, 0, 10, 0, 1, 10, 1, 1 from generate_series(10, 19) as n`);
    // Three connections wait at once for some 40 ms only, which looks at the database miss where the machine is busy.
    let refused = 0;
    const transaction = async (...args: Parameters<Database['transaction']>) => {
      const [, wait] = args;
      return database.transaction(...args).catch((error: unknown) => {
        if (isLockRefused(error) && !wait?.isSlow) refused += 1;
        throw error;
      });
    };
    // The cast is right: it returns what `database.transaction` returns for the same statements.
    const noted = { ...database, transaction: transaction as Database['transaction'] };
    const claims = openClaims(noted, await openFleet(database), { conflictRetryCount: 10 });
    await other.query('begin; select from resource_providers where id between 10 and 12 for update');
    const waiting: Promise<unknown>[] = [];
    for (const host of [10, 11, 12]) {
      waiting.push(claims.write(claimOn(`host ${host}`, `on ${host}`, 1)));
      await until('its lock was refused', () => refused >= waiting.length);
    }
    await claims.write(claimOn('host 19', 'free', 1));
    const { rows } = await other.query('select consumer_id as consumer from allocations');
    assert.deepEqual(rows, [{ consumer: 'free' }]);
    await other.query('commit');
    await Promise.all(waiting);
  });
});

test('of claims that were sent together only the claims that need a locked row wait', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query('begin; select from resource_providers where id = 1 for update');
    const written: string[] = [];
    const write = (uuid: string, provider: string): Promise<void> =>
      claims.write(claimOn(provider, uuid, 1)).then(() => void written.push(uuid));
    // The first claim goes alone, because no write is running yet. The others go together.
    const free = ['free 0', 'free 1', 'free 2', 'free 3'];
    const all = [...free.slice(0, 2).map((uuid) => write(uuid, 'rp2')), write('held', 'rp1'), write('held too', 'rp1')];
    await Promise.all([...all.slice(0, 2), ...free.slice(2).map((uuid) => write(uuid, 'rp2'))]);
    assert.deepEqual(written.toSorted(), free);
    await other.query('commit');
    await Promise.all(all);
    assert.deepEqual(written.slice(4).toSorted(), ['held', 'held too']);
  });
});

test('of deletions that were sent together only the deletion of the locked consumer waits', async () => {
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

test('a claim whose project is inserted by another open transaction waits alone', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query(`begin; insert into projects (id, external_id) values (50, 'new project')`);
    const waiting = claims.write(claimOn('rp1', 'waiting', 1, { projectId: 'new project', knownGeneration: null }));
    await untilWaiting(other);
    // One at a time, and so each in a separate batch. Two of them need the same project or the same consumer.
    for (const n of [1, 2, 3]) await claims.write(claimOn('rp1', `free ${n}`, 1, { knownGeneration: null }));
    const same = claims.write(claimOn('rp2', 'same', 1, { projectId: 'new project', knownGeneration: null }));
    const later = claims.write(claimOn('rp2', 'waiting', 1));
    await claims.write(claimOn('rp2', 'free 4', 1, { projectId: 'another new project', knownGeneration: null }));
    const written = async () =>
      (await other.query('select uuid from consumers order by 1')).rows.map(({ uuid }) => uuid);
    assert.deepEqual(await written(), ['free 1', 'free 2', 'free 3', 'free 4']);
    await other.query('commit');
    await Promise.all([waiting, same, later]);
    assert.deepEqual((await written()).slice(4), ['same', 'waiting']);
  });
});

test('even if many consumers are locked, claims and deletions of others continue, and none is refused', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query('update inventories set total = 1000, max_unit = 1000');
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 0 });
    const deletions = openDeletions(database);
    const held = Array.from({ length: 12 }, (_, n) => `held ${n}`);
    const free = Array.from({ length: 12 }, (_, n) => `free ${n}`);
    await Promise.all([...held, ...free].map((uuid) => claims.write(claimOn('rp1', uuid, 1))));
    await other.query(`begin; select from consumers where uuid like 'held %' for update`);
    const waiting = held.map((uuid, n) =>
      n % 2 === 0 ? claims.write(claimOn('rp1', uuid, 2)) : deletions.delete(uuid),
    );
    const answered: unknown[] = [];
    for (const each of waiting) void each.then((answer) => answered.push(answer));
    for (const uuid of free) {
      await Promise.all([claims.write(claimOn('rp1', uuid, 2)), claims.write(claimOn('rp1', `new ${uuid}`, 1))]);
      assert.equal(await deletions.delete(uuid), 1);
    }
    assert.deepEqual(answered, [], 'no request for a locked consumer has an answer');
    await other.query('commit');
    await Promise.all(waiting);
    const { rows } = await other.query(
      `select count(*)::integer as count, sum(used)::integer as used from allocations`,
    );
    assert.deepEqual(rows, [{ count: 18, used: 6 * 2 + 12 }]);
  });
});

test('consumers that another transaction is about to make block only claims that make the same consumers', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query('begin');
    for (const uuid of ['held 1', 'held 2']) {
      await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('${uuid}', 1, 1, 1)`);
    }
    const make = (uuid: string) => claims.write(claimOn('rp1', uuid, 1, { knownGeneration: null }));
    const waiting = ['held 1', 'held 2'].map(make);
    await Promise.all(['free 1', 'free 2', 'free 3'].map(make));
    await other.query('rollback');
    await Promise.all(waiting);
    const { rows } = await other.query('select uuid from consumers order by 1');
    assert.deepEqual(
      rows.map(({ uuid }) => uuid),
      ['free 1', 'free 2', 'free 3', 'held 1', 'held 2'],
    );
  });
});

test('a locked row that is in no conflict key, and that many claims need, does not delay other claims on the same provider', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`update inventories set total = 1000, max_unit = 1000;
      insert into consumer_types (name) values ('HELD'), ('FREE')`);
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    const make = (uuid: string, consumerType: string) =>
      claims.write(claimOn('rp1', uuid, 1, { knownGeneration: null, consumerType }));
    await other.query(`begin; select from consumer_types where name = 'HELD' for update`);
    const held = Array.from({ length: 60 }, (_, n) => `held ${n}`);
    const waiting = held.map((uuid) => make(uuid, 'HELD'));
    const startedMs = performance.now();
    for (let n = 0; n < 40; n += 1) await make(`free ${n}`, 'FREE');
    const tookMs = performance.now() - startedMs;
    await other.query('commit');
    await Promise.all(waiting);
    // Each would take seconds if it waited for the 60, and a slow machine must not fail the test.
    assert.ok(tookMs < 40_000, `40 claims took ${tookMs} ms`);
    const { rows } = await other.query('select count(*)::integer as count from allocations');
    assert.deepEqual(rows, [{ count: 100 }]);
  });
});

test('claims that take an existing consumer for new are refused, and other claims of their batch are written', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`update inventories set total = 1000, max_unit = 1000;
      insert into consumers (uuid, project_id, user_id, generation) select 'recorded ' || n, 1, 1, 3 from generate_series(0, 7) as n`);
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 1 });
    for (let round = 0; round < 5; round += 1) {
      const make = (uuid: string) => claims.write(claimOn('rp1', uuid, 1, { knownGeneration: null }));
      const outcomes = await Promise.allSettled(
        Array.from({ length: 16 }, (_, n) => make(n % 2 === 0 ? `recorded ${n / 2}` : `new ${round} ${n}`)),
      );
      assert.deepEqual(
        outcomes.map((each) => (each.status === 'fulfilled' ? 'written' : each.reason.reason)),
        Array.from({ length: 16 }, (_, n) => (n % 2 === 0 ? 'consumer generation' : 'written')),
      );
    }
  });
});
