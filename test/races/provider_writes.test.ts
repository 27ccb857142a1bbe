/**
 * Provider writes of one process are based on its knowledge, and are written together: the knowledge may be outdated,
 * and other writes may fail.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import type { ProviderWrite } from '../../db/statements/providers/provider_write.ts';
import { openProviderWrites } from '../../src/api/resource_providers/provider_writes.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { traitsTag } from '../../src/placement/entity_tag.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';
import { requestsTo } from '../support/requests.ts';
import { openServiceOn, withTestService } from '../support/services.ts';
import { numberedUuid } from '../support/uuids.ts';
import { newChild, untilWaitingFor, waitingCount, withTwoConnections } from './two_connections.ts';

/** Like the function of `requestsTo`, but it returns only the status. */
type Send = (method: string, path: string, body?: unknown, version?: string) => Promise<number>;

function senderTo(service: PlacementService): Send {
  const send = requestsTo(service);
  return async (...request) => (await send(...request)).status;
}

const inventories = (resourceClass: string, generation: number) => ({
  inventories: { [resourceClass]: { total: 8 } },
  resource_provider_generation: generation,
});

test('changes of another process count, even if this process has not read them yet', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const services = [await openServiceOn(database), await openServiceOn(database)] as const;
    try {
      const [ours, theirs] = [senderTo(services[0]), senderTo(services[1])];
      const one = `/resource_providers/${numberedUuid(1)}`;
      await theirs('POST', '/resource_providers', { name: 'one', uuid: numberedUuid(1) });
      assert.equal(
        await ours('PUT', `${one}/inventories`, inventories('VCPU', 0)),
        200,
        'a provider of the other process',
      );
      await theirs('PUT', `${one}/inventories`, inventories('VCPU', 1));
      assert.equal(await ours('PUT', `${one}/inventories`, inventories('VCPU', 1)), 409, 'the former generation');
      assert.equal(await ours('PUT', `${one}/inventories`, inventories('VCPU', 2)), 200, 'the current generation');

      await ours('PUT', '/resource_classes/CUSTOM_OLD', undefined, 'placement 1.7');
      await theirs('PUT', '/resource_classes/CUSTOM_OLD', { name: 'CUSTOM_NEW' }, 'placement 1.6');
      assert.equal(await ours('PUT', `${one}/inventories`, inventories('CUSTOM_OLD', 3)), 400, 'the former name');
      assert.equal(await ours('PUT', `${one}/inventories`, inventories('CUSTOM_NEW', 3)), 200, 'the current name');

      const traits = { traits: ['CUSTOM_T'], resource_provider_generation: 4 };
      await ours('PUT', '/traits/CUSTOM_T');
      await ours('GET', '/traits');
      await theirs('DELETE', '/traits/CUSTOM_T');
      assert.equal(await ours('PUT', `${one}/traits`, traits), 400, 'a trait that was deleted');
      await theirs('PUT', '/traits/CUSTOM_T');
      assert.equal(await ours('PUT', `${one}/traits`, traits), 200, 'a trait that was made again');
      await theirs('PUT', `${one}/traits`, { traits: [], resource_provider_generation: 5 });
      assert.equal(await ours('PUT', `${one}/traits`, { ...traits, resource_provider_generation: 5 }), 409);

      await theirs('PUT', `${one}/aggregates`, { aggregates: [numberedUuid(7)], resource_provider_generation: 6 });
      const aggregates = { aggregates: [], resource_provider_generation: 6 };
      assert.equal(await ours('PUT', `${one}/aggregates`, aggregates), 409);
      assert.equal(await ours('PUT', `${one}/aggregates`, { ...aggregates, resource_provider_generation: 7 }), 200);
      for (const part of ['inventories', 'traits']) await theirs('DELETE', `${one}/${part}`);
      await theirs('DELETE', one);
      assert.equal(await ours('PUT', `${one}/aggregates`, aggregates), 404, 'a provider that was deleted');
    } finally {
      await Promise.all(services.map((service) => service.close()));
    }
  });
});

for (const engine of engines) {
  test(`each of several simultaneous writes gets its own answer on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = senderTo(service);
      const numbers = Array.from({ length: 12 }, (_, number) => number);
      const create = (number: number, name: string) =>
        send('POST', '/resource_providers', { name, uuid: numberedUuid(number) });
      // Every third write uses a name that is taken already, or that another of the writes uses.
      await create(99, 'taken');
      const made = await Promise.all(numbers.map((n) => create(n, n % 3 === 0 ? 'taken' : `name ${n}`)));
      assert.deepEqual(
        made,
        numbers.map((n) => (n % 3 === 0 ? 409 : 200)),
      );
      const contested = await Promise.all([20, 21, 22].map((n) => create(n, 'contested')));
      assert.deepEqual(contested.toSorted(), [200, 409, 409]);

      // Of several writes of the same provider the first succeeds and the others fail. A write of another provider is
      // not affected.
      const put = (number: number) =>
        send('PUT', `/resource_providers/${numberedUuid(number)}/inventories`, inventories('VCPU', 0));
      const written = await Promise.all([1, 1, 1, 2, 4, 0].map(put));
      assert.deepEqual(written.slice(0, 3).toSorted(), [200, 409, 409]);
      assert.deepEqual(written.slice(3), [200, 200, 404]);
    });
  });
}

test('if one of many simultaneous writes is refused, the other writes are done, on few connections', async () => {
  await withTestService('postgresql', {}, async (service) => {
    const send = senderTo(service);
    const names = ['first', ...Array.from({ length: 64 }, (_, n) => (n === 30 ? 'first' : `name ${n}`))];
    const made = await Promise.all(names.map((name) => send('POST', '/resource_providers', { name })));
    assert.deepEqual(
      made,
      names.map((_, index) => (index === 31 ? 409 : 200)),
    );
    const { open } = service.database.connections();
    assert.ok(open <= 6, `${open} connections`);
  });
});

test('if many writes are blocked, a write that needs none of their rows does not wait for all of them', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const service = await openServiceOn(database, { placementDatabase: { statementTimeout: 2 } });
    const send = senderTo(service);
    const numbers = Array.from({ length: 10 }, (_, n) => n);
    for (const n of numbers) await send('POST', '/resource_providers', { name: `name ${n}`, uuid: numberedUuid(n) });
    const other = new pg.Client({ connectionString: database.config.connection });
    await other.connect();
    await other.query('begin; select from resource_providers for update');
    const answered: string[] = [];
    const tell = (what: string) => (status: number) => void answered.push(`${what}: ${status}`);
    const traits = { resource_provider_generation: 0, traits: ['HW_CPU_X86_AVX2'] };
    const held = numbers.map((n) =>
      send('PUT', `/resource_providers/${numberedUuid(n)}/traits`, traits).then(tell('held')),
    );
    // Only the slow lane waits so long: the shared batch has failed, and its writes are repeated apart from new ones.
    await untilWaitingFor(other, 100);
    await send('POST', '/resource_providers', { name: 'free' }).then(tell('free'));
    await Promise.all(held);
    assert.ok(answered.indexOf('free: 200') <= 4, answered.join(', '));
    assert.deepEqual(answered.toSorted(), ['free: 200', ...numbers.map(() => 'held: 503')]);
    await other.end();
    await service.close();
  });
});

test('a write that succeeded, but can neither be shown nor read, is not retried', async () => {
  await withTwoConnections(async ({ database }) => {
    const fleet = await openFleet(database);
    // The database fails when the changes are read, after the write.
    const fresh = () => sql`select 1 / 0`.execute(database.kysely).then(() => fleet.fresh());
    const { perform } = openProviderWrites(database, { ...fleet, fresh, applyOwnWrite: () => false });
    const bare = (providerId: number, generation: number): ProviderWrite => ({
      kind: 'traits',
      providerId,
      uuid: `rp${providerId}`,
      generation,
      traits: [],
      present: [],
      tag: traitsTag([]),
      tagBefore: traitsTag([]),
    });
    const outcomes = await Promise.allSettled([bare(1, 5), bare(2, 5), bare(2, 6)].map(perform));
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    );
    const providers = await database.kysely.selectFrom('resource_providers').select(['id', 'generation']).execute();
    const generations = new Map(providers.map(({ id, generation }) => [id, generation]));
    assert.deepEqual([generations.get(1), generations.get(2)], [6, 7]);
  });
});

test('a write of a locked provider fails after its wait, and writes of other providers do not wait', async () => {
  await withHeldProvider(async (send) => {
    // The first write goes alone, because no write is running yet. The others wait for it, and go together.
    const put = (n: number) =>
      send('PUT', `/resource_providers/${numberedUuid(n)}/inventories`, inventories('VCPU', 0));
    assert.deepEqual(await Promise.all([1, 2, 3].map(put)), [200, 503, 200]);
  });
});

test('any number of writes of a locked provider, or of children of it, wait on one connection', async () => {
  await withHeldProvider(async (send, client) => {
    const put = (n: number) =>
      send('PUT', `/resource_providers/${numberedUuid(n)}/inventories`, inventories('VCPU', 0));
    const child = { name: 'child', uuid: numberedUuid(4), parent_provider_uuid: numberedUuid(2) };
    let outcomes = false;
    const answers = Promise.all([
      put(1),
      ...Array.from({ length: 9 }, () => put(2)),
      send('POST', '/resource_providers', child),
      put(3),
    ]);
    void answers.then(() => {
      outcomes = true;
    });
    let most = 0;
    while (!outcomes) {
      most = Math.max(most, await waitingCount(client));
      await sleep(20);
    }
    assert.deepEqual(await answers, [200, ...Array.from({ length: 10 }, () => 503), 200]);
    assert.equal(most, 1);
  });
});

test('a write with a text that the database cannot store fails alone', async () => {
  await withTwoConnections(async ({ database }) => {
    const { perform } = openProviderWrites(database, await openFleet(database));
    const names = Array.from({ length: 40 }, (_, n) => (n === 20 ? 'a NUL: \0' : `name ${n}`));
    const outcomes = await Promise.allSettled(names.map((name) => perform(newChild(name, { id: 1, uuid: 'rp1' }))));
    assert.deepEqual(
      outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : [])),
      [20],
    );
    const made = await database.kysely.selectFrom('resource_providers').select('name').where('id', '>', 100).execute();
    assert.deepEqual(new Set(made.map(({ name }) => name)), new Set(names.toSpliced(20, 1)));
  });
});

test('while a table is locked, writes that need the table wait in the slow lane, and other writes are done', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const other = new pg.Client({ connectionString: database.config.connection });
    await other.connect();
    const service = await openServiceOn(database);
    try {
      const send = senderTo(service);
      const numbers = Array.from({ length: 12 }, (_, n) => n);
      for (const n of numbers) await send('POST', '/resource_providers', { name: `name ${n}`, uuid: numberedUuid(n) });
      await other.query('begin; lock table resource_provider_traits in share mode');
      const traits = { resource_provider_generation: 0, traits: ['HW_CPU_X86_AVX2'] };
      const put = (n: number) => send('PUT', `/resource_providers/${numberedUuid(n)}/traits`, traits);
      const held = numbers.map(put);
      let isHeld = true;
      void Promise.race(held).then(() => {
        isHeld = false;
      });
      let most = 0;
      for (let look = 0; look < 30; look += 1) {
        if (look % 10 === 0) assert.equal(await send('POST', '/resource_providers', { name: `free ${look}` }), 200);
        most = Math.max(most, await waitingCount(other));
        await sleep(10);
      }
      assert.ok(isHeld);
      assert.ok(most <= 4, `${most} connections waited`);
      await other.query('rollback');
      assert.deepEqual(
        await Promise.all(held),
        numbers.map(() => 200),
      );
    } finally {
      await other.end();
      await service.close();
    }
  });
});

/**
 * Runs a service with three providers. Another connection has locked the second one. A statement may take one second.
 */
async function withHeldProvider(use: (send: Send, client: pg.Client) => Promise<void>): Promise<void> {
  await withFreshDatabase('postgresql', async (database) => {
    if (!('connection' in database.settings)) throw new Error('A lock needs a connection of its own.');
    const client = new pg.Client({ connectionString: database.settings.connection });
    await client.connect();
    const service = await openServiceOn(database, { placementDatabase: { statementTimeout: 1 } });
    try {
      const send = senderTo(service);
      for (const n of [1, 2, 3])
        await send('POST', '/resource_providers', { name: `name ${n}`, uuid: numberedUuid(n) });
      await client.query('begin');
      await client.query(`select from resource_providers where uuid = '${numberedUuid(2)}' for update`);
      await use(send, client);
    } finally {
      await client.end();
      await service.close();
    }
  });
}
