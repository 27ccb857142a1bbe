/**
 * A request that names no generation is judged again if another program has changed meanwhile what it was judged by. If that
 * happens each time, it is refused in the end; a read, whose parts belong to one snapshot, is a 503 then.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { untilDone } from '../../src/request/until_done.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine } from '../support/engines.ts';
import { type Answer, accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

/** After so many times another program leaves it alone: a request that is not refused by then succeeds. */
const mostTimes = 60;

type World = { readonly service: PlacementService; readonly send: Send; readonly host: string };

/** Lets another program change something after each refresh of the fleet. @returns how often it did so */
function afterEachRefresh({ fleet }: PlacementService, change: () => Promise<unknown>): () => number {
  const { fresh } = fleet;
  let times = 0;
  fleet.fresh = async () => {
    const shown = await fresh();
    if (times < mostTimes) {
      times += 1;
      await change();
    }
    return shown;
  };
  return () => times;
}

/** A service with a host of 8 VCPU, and other providers that other programs change. */
const withHost = (use: (world: World) => Promise<void>, retryCount = 10): Promise<void> =>
  withTestService(anyEngine, { placement: { allocationConflictRetryCount: retryCount } }, async (service) => {
    const send = requestsTo(service, 'placement 2.6');
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 8 } });
    await use({ service, send, host });
  });

const raise = ({ service: { database }, host }: World) =>
  sql`update resource_providers set generation = generation + 1 where uuid = ${host}`.execute(database.kysely);

const rename = ({ service: { database }, host }: World) =>
  sql`update resource_providers set name = ${randomUUID()} where uuid = ${host}`.execute(database.kysely);

/** Deletes the host and makes it again, under another id. */
async function makeAgain({ service: { database }, host }: World): Promise<void> {
  await database.transaction([
    sql`delete from inventories where resource_provider_id in (select id from resource_providers where uuid = ${host})`,
    sql`delete from resource_providers where uuid = ${host}`,
    sql`insert into resource_providers (uuid, name, generation) values (${host}, ${host}, 0)`,
    sql`update resource_providers set root_provider_id = id where uuid = ${host}`,
  ]);
}

/** Moves the host below another provider, which is a new one each time. */
async function move({ service: { database }, host }: World): Promise<void> {
  const parent = randomUUID();
  await database.transaction([
    sql`insert into resource_providers (uuid, name, generation) values (${parent}, ${parent}, 0)`,
    sql`update resource_providers set root_provider_id = id where uuid = ${parent}`,
    sql`update resource_providers set (root_provider_id, parent_provider_id) = (
      select id, id from resource_providers where uuid = ${parent}) where uuid = ${host}`,
  ]);
}

/** Requests, and what another program does each time. */
const requests: Readonly<
  Record<string, readonly [change: (world: World) => Promise<unknown>, send: (world: World) => Promise<Answer>]>
> = {
  'POST of an inventory': [
    raise,
    ({ send, host }) =>
      send('POST', `/resource_providers/${host}/inventories`, { resource_class: 'DISK_GB', total: 10 }),
  ],
  'DELETE of an inventory with If-Match': [
    raise,
    ({ service, host }) => ifMatch(service, 'DELETE', `/resource_providers/${host}/inventories/VCPU`),
  ],
  'PUT of aggregates at 1.1': [
    makeAgain,
    ({ send, host }) => send('PUT', `/resource_providers/${host}/aggregates`, [randomUUID()], 'placement 1.1'),
  ],
  'PUT of a provider': [
    makeAgain,
    ({ send, host }) => send('PUT', `/resource_providers/${host}`, { name: 'another name' }),
  ],
  'PUT of a provider with another parent': [
    move,
    async ({ send, host }) => {
      const parent = randomUUID();
      accepted(await send('POST', '/resource_providers', { uuid: parent, name: parent }));
      return send('PUT', `/resource_providers/${host}`, { name: host, parent_provider_uuid: parent });
    },
  ],
  'DELETE of a provider with If-Match': [
    rename,
    ({ service, host }) => ifMatch(service, 'DELETE', `/resource_providers/${host}`),
  ],
};

async function ifMatch({ app }: PlacementService, method: string, path: string): Promise<Answer> {
  const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 2.6', 'if-match': '*' };
  const response = await app.request(path, { method, headers });
  const text = await response.text();
  return { request: path, status: response.status, headers: response.headers, text, json: undefined };
}

for (const [what, [change, request]] of Object.entries(requests)) {
  test(`${what} that loses each time is refused`, async () => {
    await withHost(async (world) => {
      const timesOf = afterEachRefresh(world.service, () => change(world));
      const { status, text } = await request(world);
      assert.equal(status, 409, text);
      assert.match(text, /concurrent/);
      assert.ok(timesOf() >= 20 && timesOf() < mostTimes, `after ${timesOf()} times`);
    });
  });
}

test('a list of the consumers of a tree that changes each time is a 503', async () => {
  await withHost(async (world) => {
    const timesOf = afterEachRefresh(world.service, () => move(world));
    const { status, text } = await world.send('GET', `/consumers?in_tree=${world.host}`);
    assert.equal(status, 503, text);
    assert.ok(timesOf() >= 20 && timesOf() < mostTimes, `after ${timesOf()} times`);
  });
});

test('candidates apart from a consumer that changes each time are a 503', async () => {
  await withHost(async ({ service, send, host }) => {
    const consumer = randomUUID();
    accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
    const timesOf = afterEachRefresh(service, () =>
      sql`update consumers set generation = generation + 1 where uuid = ${consumer}`.execute(service.database.kysely),
    );
    const { status, text } = await send('GET', `/allocation_candidates?resources=VCPU:1&apart_from=${consumer}`);
    assert.equal(status, 503, text);
    assert.ok(timesOf() >= 20 && timesOf() < mostTimes, `after ${timesOf()} times`);
  });
});

test('a dry run, and a claim that does not fit, are refused if their consumer has changed each time', async () => {
  for (const [dryRun, amount] of [
    [true, 1],
    [false, 100],
  ] as const) {
    await withHost(async (world) => {
      const { send, host, service } = world;
      const consumer = randomUUID();
      accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
      const timesOf = afterEachRefresh(service, () =>
        sql`update consumers set generation = generation + 1 where uuid = ${consumer}`.execute(service.database.kysely),
      );
      // Up to 1.27 a claim names no generation; in a dry run If-Match replaces it.
      const { consumer_generation: _, consumer_type: __, ...claim } = newClaim({ [host]: { VCPU: amount } });
      const { status, text } = dryRun
        ? await send('POST', '/allocations', {
            [randomUUID()]: {
              ...newClaim({}),
              allocations: undefined,
              candidates: `resources=VCPU:1&with=${consumer}`,
            },
            dry_run: true,
          })
        : await send('PUT', `/allocations/${consumer}`, claim, 'placement 1.27');
      assert.equal(status, 409, text);
      assert.match(text, /Another thread concurrently updated/);
      assert.ok(timesOf() < mostTimes);
    });
  }
});

test('a dry run whose consumer has changed once is answered', () =>
  withHost(async ({ service, send, host }) => {
    const consumer = randomUUID();
    accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
    let times = 0;
    afterEachRefresh(service, async () => {
      times += 1;
      if (times > 1) return;
      await sql`update allocations set used = 3 where consumer_id = ${consumer}`.execute(service.database.kysely);
    });
    const wanted = { ...newClaim({ [host]: { VCPU: 6 } }), consumer_generation: 1, dry_run: true };
    accepted(await send('PUT', `/allocations/${consumer}`, wanted));
    assert.equal(times, 2);
  }));

for (const retryCount of [0, 3]) {
  test(`a claim below 1.28 whose consumer changes each time is judged ${retryCount + 1} times`, async () => {
    await withHost(async ({ service, send, host }) => {
      const { database } = service;
      const consumer = randomUUID();
      accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
      const { transaction } = database;
      let times = 0;
      // Another program writes after the claim was judged, and before its statement.
      Object.assign(database, {
        transaction: async (...sent: Parameters<typeof transaction>) => {
          times += 1;
          await sql`update consumers set generation = generation + 1 where uuid = ${consumer}`.execute(database.kysely);
          return transaction(...sent);
        },
      });
      const { consumer_generation: _, consumer_type: __, ...claim } = newClaim({ [host]: { VCPU: 2 } });
      const { status, text } = await send('PUT', `/allocations/${consumer}`, claim, 'placement 1.27');
      Object.assign(database, { transaction });
      assert.equal(status, 409, text);
      assert.equal(times, retryCount + 1);
      const { json } = await send('GET', `/allocations/${consumer}`);
      assert.equal(at(json, 'allocations', host, 'resources', 'VCPU'), 1);
    }, retryCount);
  });
}

test('a claim whose project is removed each time that it was made is refused', async () => {
  await withHost(async ({ service, send, host }) => {
    const { database } = service;
    const { transaction } = database;
    let times = 0;
    Object.assign(database, {
      transaction: async (...sent: Parameters<typeof transaction>) => {
        times += 1;
        if (times < mostTimes) await sql`delete from projects`.execute(database.kysely);
        return transaction(...sent);
      },
    });
    const { status, text } = await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } }));
    Object.assign(database, { transaction });
    assert.equal(status, 409, text);
    assert.ok(times < mostTimes);
  });
});

test('an attempt that is refused ends at once, and one that is written is the last', async () => {
  let attempts = 0;
  const written = await untilDone(async () => {
    attempts += 1;
    return attempts === 3 ? false : undefined;
  });
  assert.equal(written, false);
  assert.equal(attempts, 3);
  const refused = new Error('refused');
  await assert.rejects(
    untilDone(() => Promise.reject(refused)),
    refused,
  );
});

test('an attempt that fails each time is made 32 times, or as often as requested, and ends with one error', async () => {
  for (const attempts of [undefined, 1, 4]) {
    const numbers: number[] = [];
    const inVain = async (made: number): Promise<undefined> => void numbers.push(made);
    const lostRace = () => new Error('lost each time');
    await assert.rejects(untilDone(inVain, { attempts, lostRace }), lostRace());
    assert.deepEqual(numbers, [...Array(attempts ?? 32).keys()]);
  }
  await assert.rejects(
    untilDone(async () => undefined),
    { status: 409, code: 'placement.concurrent_update' },
  );
});
