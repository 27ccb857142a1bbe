/** The change log tells of each generation that is raised, with one row for each provider, or more where it must. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { Database } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { formOf } from '../races/fleet_form.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

test('another process knows the generations after each kind of claim', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const { database } = service;
    const send = requestsTo(service);
    const [first, second, consumer] = [randomUUID(), randomUUID(), randomUUID()];
    for (const host of [first, second]) await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await send('PUT', `/allocations/${randomUUID()}`, typed({ [first]: { VCPU: 1 } })));
    const other = await openFleet(database);
    const generations = () => [first, second].map((uuid) => other.known.byUuid.get(uuid)?.generation);
    /** @returns how many rows were logged meanwhile */
    const claimed = async (body: object, path = `/allocations/${consumer}`): Promise<number> => {
      const before = await rowsOfLog(database);
      accepted(await send(path === '/allocations' || path === '/reshaper' ? 'POST' : 'PUT', path, body));
      const logged = (await rowsOfLog(database)) - before;
      assert.deepEqual(formOf(await other.fresh()), formOf((await loadFleet(database)).living.fleet));
      return logged;
    };

    assert.equal(await claimed(typed({ [first]: { VCPU: 2 } })), 1);
    assert.deepEqual(generations(), [3, 1]);
    // The consumer moves to the other host: a row for each host.
    assert.equal(await claimed(typed({ [second]: { VCPU: 2 } }, 1)), 2);
    assert.deepEqual(generations(), [3, 2]);
    // A reshaper raises generations for inventories as well.
    const inventories = { [second]: { resource_provider_generation: 2, inventories: { VCPU: { total: 9 } } } };
    await claimed({ inventories, allocations: { [consumer]: typed({ [first]: { VCPU: 1 } }, 2) } }, '/reshaper');
    assert.deepEqual(generations(), [4, 4]);
    // The consumer releases everything. Meanwhile another program has deleted its allocations, so that this statement deletes none.
    await sql`delete from allocations where consumer_id = ${consumer}`.execute(database.kysely);
    await other.fresh();
    const providerId = other.known.byUuid.get(first)?.id ?? 0;
    const emptied = { ...newConsumer, uuid: consumer, generation: 3 };
    await writeClaims(database, [
      { providers: [{ providerId, generation: 4, bump: 1 }], consumers: [emptied], inventories: [] },
    ]);
    assert.deepEqual(formOf(await other.fresh()), formOf((await loadFleet(database)).living.fleet));
    assert.deepEqual(generations(), [5, 4]);
  });
});

test('another process knows the generations after each kind of write of a provider', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const { database } = service;
    const send = requestsTo(service);
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 4 } });
    const other = await openFleet(database);
    let generation = 1;
    /** @returns how many rows were logged meanwhile */
    const written = async (part: string, content: object): Promise<number> => {
      const before = await rowsOfLog(database);
      const body = { ...content, resource_provider_generation: generation };
      accepted(await send('PUT', `/resource_providers/${host}/${part}`, body));
      generation += 1;
      const logged = (await rowsOfLog(database)) - before;
      assert.deepEqual(formOf(await other.fresh()), formOf((await loadFleet(database)).living.fleet));
      assert.equal(other.known.byUuid.get(host)?.generation, generation);
      return logged;
    };
    const [one, two] = [randomUUID(), randomUUID()];
    assert.equal(await written('inventories', { inventories: { VCPU: { total: 8 } } }), 1);
    assert.equal(await written('inventories', { inventories: { VCPU: { total: 8 } } }), 1);
    // One row for the class that is added, one for that which is removed.
    assert.equal(await written('inventories', { inventories: { DISK_GB: { total: 8 } } }), 2);
    assert.equal(await written('inventories', { inventories: {} }), 1);
    // Nothing but the generation changes.
    assert.equal(await written('inventories', { inventories: {} }), 1);
    assert.equal(await written('traits', { traits: ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2'] }), 1);
    assert.equal(await written('traits', { traits: ['HW_CPU_X86_AVX'] }), 1);
    assert.equal(await written('traits', { traits: ['HW_CPU_X86_AVX2'] }), 2);
    assert.equal(await written('traits', { traits: [] }), 1);
    assert.equal(await written('aggregates', { aggregates: [one] }), 1);
    assert.equal(await written('aggregates', { aggregates: [one] }), 1);
    assert.equal(await written('aggregates', { aggregates: [two] }), 2);
    assert.equal(await written('aggregates', { aggregates: [] }), 1);
    assert.equal(await written('aggregates', { aggregates: [] }), 1);
  });
});

const rowsOfLog = async ({ kysely }: Pick<Database, 'kysely'>): Promise<number> =>
  (await onlyRow(kysely, sql<{ n: number }>`select count(*)::integer as n from provider_changes`)).n;

const newConsumer = {
  hasOldAllocations: false,
  projectExternalId: 'p',
  userExternalId: 'u',
  consumerType: null,
  allocations: [],
  etag: null,
};

const typed = (allocations: Parameters<typeof newClaim>[0], generation: number | null = null) => ({
  ...newClaim(allocations),
  consumer_generation: generation,
  consumer_type: 'INSTANCE',
});
