/** Writes that no trigger logs, as under session_replication_role = replica: they are found by comparing the fleet with the database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { pino } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import { noteUnlogged } from '../../db/fleet/log_position.ts';
import { compareFleet } from '../../src/fleet/keep/comparison.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { openService } from '../../src/start/service.ts';
import { formOf } from '../races/fleet_form.ts';
import { randomFrom, seedFor } from '../races/random.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { testConfig, withTestService } from '../support/services.ts';
import { withTwoServices } from '../support/two_services.ts';
import { until } from '../support/until.ts';

const [parent, child, alone, consumer, aggregate] = [1, 2, 3, 4, 5].map(
  (number) => `00000000-0000-4000-8000-00000000000${number}`,
) as [string, string, string, string, string]; // five of five

/** Makes three providers, two of them a tree, with all that providers may have. */
async function fill(send: Send): Promise<void> {
  accepted(await send('PUT', '/traits/CUSTOM_ONE'));
  accepted(await send('PUT', '/traits/CUSTOM_OTHER'));
  accepted(await send('PUT', '/resource_classes/CUSTOM_THING'));
  for (const [uuid, more] of [[parent], [child, { parent_provider_uuid: parent }], [alone]] as const) {
    await makeProvider(send, uuid, { VCPU: { total: 8 }, CUSTOM_THING: { total: 4 } }, more);
  }
  const generation = 1;
  accepted(
    await send('PUT', `/resource_providers/${child}/traits`, {
      resource_provider_generation: generation,
      traits: ['CUSTOM_ONE'],
    }),
  );
  accepted(
    await send('PUT', `/resource_providers/${alone}/aggregates`, {
      resource_provider_generation: generation,
      aggregates: [aggregate],
    }),
  );
  accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [child]: { VCPU: 2 } })));
}

/** Runs a statement as logical replication does: without triggers. */
const unlogged = ({ kysely }: Database, ...statements: readonly string[]): Promise<void> =>
  kysely.transaction().execute(async (trx) => {
    await sql`set local session_replication_role = 'replica'`.execute(trx);
    for (const statement of statements) await sql.raw(statement).execute(trx);
  });

const provider = (uuid: string): string => `(select id from resource_providers where uuid = '${uuid}')`;
const named = (table: string, name: string): string => `(select id from ${table} where name = '${name}')`;

/** What other programs may change, by the table that the comparison must name. */
const changes: readonly (readonly [what: string, table: string, ...statements: string[]])[] = [
  ['the name of a provider', 'resource_providers', `update resource_providers set name = 'x' where uuid = '${alone}'`],
  [
    'a generation',
    'resource_providers',
    `update resource_providers set generation = generation + 1 where uuid = '${child}'`,
  ],
  [
    'a parent',
    'resource_providers',
    `update resource_providers set parent_provider_id = ${provider(alone)} where uuid = '${child}'`,
  ],
  [
    'when a provider was made',
    'resource_providers',
    `update resource_providers set created_at = '2001-01-01' where uuid = '${child}'`,
  ],
  [
    'a new provider',
    'resource_providers',
    `insert into resource_providers (uuid, name, generation) values ('${randomUUID()}', 'new', 0)`,
  ],
  [
    'a new provider with an id below zero',
    'resource_providers',
    `insert into resource_providers (id, uuid, name, generation) values (-7, '${randomUUID()}', 'below', 0)`,
  ],
  [
    'the size of an inventory',
    'inventories',
    `update inventories set total = 7 where resource_provider_id = ${provider(alone)} and resource_class_id = 0`,
  ],
  [
    'the ratio of an inventory',
    'inventories',
    `update inventories set allocation_ratio = 'Infinity' where resource_provider_id = ${provider(alone)}`,
  ],
  [
    'a new inventory',
    'inventories',
    `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
      values (${provider(alone)}, 1, 8, 0, 1, 8, 1, 1)`,
  ],
  [
    'an inventory that is gone',
    'inventories',
    `delete from inventories where resource_provider_id = ${provider(alone)} and resource_class_id = 0`,
  ],
  [
    'an allocation',
    'allocations',
    `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (${provider(parent)}, 0, 'x', 8)`,
  ],
  ['an allocation that is gone', 'allocations', `delete from allocations where consumer_id = '${consumer}'`],
  [
    'a trait of a provider',
    'resource_provider_traits',
    `insert into resource_provider_traits (resource_provider_id, trait_id) values (${provider(child)}, ${named('traits', 'CUSTOM_OTHER')})`,
  ],
  [
    'a trait that a provider lost',
    'resource_provider_traits',
    `delete from resource_provider_traits where resource_provider_id = ${provider(child)}`,
  ],
  [
    'the UUID of an aggregate',
    'resource_provider_aggregates',
    `update placement_aggregates set uuid = '${randomUUID()}' where uuid = '${aggregate}'`,
  ],
  [
    'an aggregate that a provider left',
    'resource_provider_aggregates',
    `delete from resource_provider_aggregates where resource_provider_id = ${provider(alone)}`,
  ],
  ['the name of a trait', 'traits', `update traits set name = 'CUSTOM_RENAMED' where name = 'CUSTOM_ONE'`],
  [
    'the name of a resource class',
    'resource_classes',
    `update resource_classes set name = 'CUSTOM_RENAMED' where name = 'CUSTOM_THING'`,
  ],
  [
    'the UUID of a provider',
    'resource_providers',
    `update resource_providers set uuid = '${randomUUID()}' where uuid = '${child}'`,
  ],
  [
    'a deleted provider',
    'resource_providers',
    `delete from inventories where resource_provider_id = ${provider(alone)}`,
    `delete from resource_providers where uuid = '${alone}'`,
  ],
  [
    'very many new providers',
    'resource_providers',
    `insert into resource_providers (uuid, name, generation)
      select gen_random_uuid()::text, 'many' || n, 0 from generate_series(1, 2000) as n`,
  ],
  [
    'all providers',
    'resource_providers',
    'delete from allocations',
    'delete from inventories',
    'delete from resource_providers',
  ],
];

test('a change that no trigger logged is found', async (t) => {
  await withTestService('postgresql', {}, async (service) => {
    const { database, fleet } = service;
    await fill(requestsTo(service));
    for (const [what, table, ...statements] of changes) {
      await t.test(what, async () => {
        const before = formOf(await fleet.fresh());
        const pieceSize = before.size < 100 ? 2 : 500;
        assert.equal(await compareFleet(database, fleet, { pieceSize }), undefined);
        await unlogged(database, ...statements);
        assert.deepEqual(formOf(await fleet.fresh()), before, 'otherwise this test proves nothing');
        const difference = await compareFleet(database, fleet, { pieceSize });
        assert.ok(
          difference?.tables.some((each) => each.includes(table)),
          JSON.stringify(difference),
        );
        await noteUnlogged(database);
        assert.deepEqual(formOf(await fleet.fresh()), formOf((await loadFleet(database)).living.fleet));
      });
    }
  });
});

test('a difference is logged and counted, and all processes load their fleets again', async () => {
  await withFreshDatabase('postgresql', async (fresh) => {
    const lines: Record<string, unknown>[] = [];
    const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const open = (compareEvery: number) =>
      openService(testConfig({ placementDatabase: { ...fresh.config, compareEvery } }), { logger });
    // Only one of them compares.
    const [comparing, other] = [await open(0.2), await open(0)];
    try {
      const [send, sendToOther] = [requestsTo(comparing, 'placement 2.1'), requestsTo(other, 'placement 2.1')];
      await fill(send);
      const path = `/resource_providers/${child}/inventories`;
      // Both have read it by then.
      accepted(await send('GET', path));
      const tag = accepted(await sendToOther('GET', path)).headers.get('etag');
      await unlogged(comparing.database, 'update inventories set total = 3 where resource_class_id = 0');
      for (const ask of [send, sendToOther]) {
        const isShown = async () => at((await ask('GET', path)).json, 'inventories', 'VCPU', 'total') === 3;
        await until('the inventory is shown as it is', isShown);
        // The generation is the same: so claims that were judged by it must be judged again.
        const much = newClaim({ [child]: { VCPU: 4 } });
        assert.equal((await ask('PUT', `/allocations/${randomUUID()}`, much)).status, 409);
        assert.notEqual((await ask('GET', path)).headers.get('etag'), tag);
        assert.deepEqual(
          formOf(await comparing.fleet.fresh()),
          formOf((await loadFleet(comparing.database)).living.fleet),
        );
      }
      const errors = lines.filter(({ level }) => level === 50).map(({ msg }) => String(msg));
      assert.equal(errors.length, 1, JSON.stringify(lines));
      assert.match(String(errors), /^The database was changed unnoticed, in inventories, of 3 resource providers: /);
      for (const uuid of [parent, child, alone]) assert.match(String(errors), new RegExp(uuid));
      const counted = async () =>
        /^placement_fleet_differences_total 1$/m.test(await (await comparing.app.request('/metrics')).text());
      await until('the difference is counted', counted);
    } finally {
      await comparing.close();
      await other.close();
    }
  });
});

test('while others write, nothing is taken for a difference', async (t) => {
  const random = randomFrom(seedFor(t));
  await withTwoServices(async ({ services, send, sendToOther }) => {
    await fill(send);
    const [first] = services;
    const hosts = Array.from({ length: 12 }, randomUUID);
    for (const host of hosts) await makeProvider(send, host, { VCPU: { total: 1000 } });
    let isOver = false;
    let written = 0;
    const { pick, below } = random;
    const writes: readonly ((ask: Send) => Promise<unknown>)[] = [
      (ask) => ask('PUT', `/allocations/${randomUUID()}`, newClaim({ [pick(hosts)]: { VCPU: 1 } })),
      async (ask) => {
        const uuid = randomUUID();
        await ask('POST', '/resource_providers', { uuid, name: uuid, parent_provider_uuid: pick(hosts) });
        await sleep(20);
        await ask('DELETE', `/resource_providers/${uuid}`);
      },
      (ask) => ask('PUT', `/traits/CUSTOM_${below(50)}`),
      (ask) => ask('DELETE', `/traits/CUSTOM_${below(50)}`),
      async (ask) => {
        const path = `/resource_providers/${pick(hosts)}/inventories`;
        const generation = at((await ask('GET', path)).json, 'resource_provider_generation');
        const inventories = { VCPU: { total: 1000, reserved: below(9) } };
        await ask('PUT', path, { resource_provider_generation: generation, inventories });
      },
      // Another program, whose writes are logged.
      () =>
        sql`update inventories set total = total + 1 where resource_provider_id =
          (select id from resource_providers where uuid = ${pick(hosts)})`.execute(first.database.kysely),
      () =>
        sql`delete from allocations where consumer_id = (select consumer_id from allocations limit 1)`.execute(
          first.database.kysely,
        ),
    ];
    const writers = [send, sendToOther, send, sendToOther].map(async (ask) => {
      while (!isOver) {
        await pick(writes)(ask);
        written++;
      }
    });
    try {
      for (let round = 0; round < 4; round++) {
        for (const { database, fleet } of services) {
          assert.equal(await compareFleet(database, fleet, { pieceSize: 5 }), undefined);
        }
      }
    } finally {
      isOver = true;
      await Promise.all(writers);
    }
    assert.ok(written > 50, `only ${written} writes`);
    for (const { fleet } of services) assert.equal(fleet.counts.loads, 1);
  });
});

test('odd rows that another program wrote are no difference once the fleet has loaded them', async () => {
  await withTestService('postgresql', {}, async (service) => {
    const { database, fleet } = service;
    await fill(requestsTo(service));
    await unlogged(
      database,
      `update resource_providers set name = null, generation = null, created_at = null where uuid = '${alone}'`,
      `update resource_providers set parent_provider_id = ${provider(child)} where uuid = '${parent}'`,
      `insert into resource_providers (id, uuid, name, generation, parent_provider_id) values (-5, '', '', 3, 4711), (-6, '{x}', 'y', 3, -6)`,
      "update inventories set allocation_ratio = 'NaN', total = 0, created_at = null, updated_at = null where resource_class_id = 0",
      `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (${provider(alone)}, 5, 'x', 8)`,
      `insert into resource_provider_traits (resource_provider_id, trait_id) values (${provider(child)}, 4711)`,
      `insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (${provider(child)}, 4711)`,
      'insert into provider_changes (provider_id, whole) values (null, false)',
    );
    await fleet.fresh();
    assert.equal(fleet.counts.loads, 2);
    assert.equal(await compareFleet(database, fleet, { pieceSize: 1 }), undefined);
  });
});

test('a comparison that is stopped does not wait for the end of its pause', async (t) => {
  await withTestService('postgresql', {}, async (service) => {
    const { database, fleet } = service;
    await fill(requestsTo(service));
    const stopping = new AbortController();
    // By this clock each piece takes minutes, and the pause after it takes several times as long.
    let nowMs = performance.now();
    t.mock.method(performance, 'now', () => {
      nowMs += 60_000;
      return nowMs;
    });
    const comparing = compareFleet(database, fleet, { stopping: stopping.signal });
    const late = sleep(1_000, 'late');
    assert.equal(await Promise.race([comparing, late]), 'late', 'it is in its pause');
    stopping.abort();
    assert.equal(await Promise.race([comparing, sleep(30_000, 'late', { ref: false })]), undefined);
  });
});
