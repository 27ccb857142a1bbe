/**
 * Other programs change the parts of a provider and leave its generation. A write that does not know these changes must
 * still store the right tag.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { renameResourceClass } from '../../db/statements/names/resource_classes.ts';
import { untilWaiting, whileOther, withTwoConnections } from '../races/two_connections.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { accepted, makeProvider, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { assertStored } from './stored_tags.ts';

const uuid = '30328d13-e299-4a93-a102-61e4ccabe474';
const path = `/resource_providers/${uuid}`;

type Request = { readonly method: string; readonly path: string; readonly body: unknown; readonly version?: string };

/**
 * Sends a request for a provider with two inventories, after statements of another connection, or while its transaction
 * is open.
 */
async function sendBesides(others: readonly string[], request: Request, when: 'after' | 'while') {
  await withFreshDatabase('postgresql', async (database) => {
    if (!('connection' in database.settings)) throw new Error('Others need a PostgreSQL server.');
    const client = new pg.Client({ connectionString: database.settings.connection });
    await client.connect();
    const service = await openServiceOn(database);
    const send = requestsTo(service);
    try {
      await makeProvider(send, uuid, { VCPU: { total: 5 }, MEMORY_MB: { total: 5 } });
      await client.query('begin');
      for (const statement of others) await client.query(statement);
      if (when === 'after') await client.query('commit');
      const sent = send(request.method, request.path, request.body, request.version);
      if (when === 'while') {
        await untilWaiting(client);
        await client.query('commit');
      }
      accepted(await sent);
      await assertStored(service, request.path, false);
    } finally {
      await service.close();
      await client.end();
    }
  });
}

const addDisk = `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
  step_size, allocation_ratio) select id, 2, 9, 0, 1, 9, 1, 1 from resource_providers`;
const addAggregate = [
  `insert into placement_aggregates (uuid) values ('theirs')`,
  `insert into resource_provider_aggregates (resource_provider_id, aggregate_id)
    select p.id, a.id from resource_providers p, placement_aggregates a`,
];
const addTrait = `insert into resource_provider_traits (resource_provider_id, trait_id)
  select p.id, t.id from resource_providers p, traits t where t.name = 'HW_CPU_X86_AVX'`;

const generation = { resource_provider_generation: 1 };
const putOne = { method: 'PUT', path: `${path}/inventories/VCPU`, body: { ...generation, total: 7 } };
const putAll = {
  method: 'PUT',
  path: `${path}/inventories`,
  body: { ...generation, inventories: { VCPU: { total: 7 } } },
};
const putTraits = { method: 'PUT', path: `${path}/traits`, body: { ...generation, traits: ['HW_CPU_X86_AVX2'] } };
const putAggregates = { method: 'PUT', path: `${path}/aggregates`, body: { ...generation, aggregates: [uuid] } };
const putAggregatesUnguarded = { ...putAggregates, body: [uuid], version: 'placement 1.18' };

const changes: Readonly<Record<string, Parameters<typeof sendBesides>>> = {
  'another inventory, before one is put': [
    ['update inventories set total = 9 where resource_class_id = 1'],
    putOne,
    'after',
  ],
  'one more inventory, before one is put': [[addDisk], putOne, 'after'],
  'one more inventory, while all are put': [[addDisk], putAll, 'while'],
  'one more trait, while they are put': [[addTrait], putTraits, 'while'],
  'one more aggregate, while they are put': [addAggregate, putAggregates, 'while'],
  'one more aggregate, while they are put below 1.19': [addAggregate, putAggregatesUnguarded, 'while'],
};

for (const [what, change] of Object.entries(changes)) {
  test(`another program changes ${what}`, async () => {
    await sendBesides(...change);
  });
}

test('no tags stay behind if a provider is deleted while a class of its inventories is renamed', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query(`insert into resource_classes (id, name) values (10000, 'CUSTOM_C')`);
    await other.query('update inventories set resource_class_id = 10000 where resource_provider_id = 2');
    const deletion = [
      'select from resource_providers where id = 2 for update',
      'delete from inventories where resource_provider_id = 2',
      'delete from resource_providers where id = 2',
    ];
    await whileOther(connections, deletion, () =>
      renameResourceClass(database, { id: 10_000, name: 'CUSTOM_C' }, 'CUSTOM_D'),
    );
    const { rows } = await other.query('select resource_provider_id as id from resource_provider_etags order by 1');
    assert.deepEqual(rows, [{ id: 1 }, { id: 3 }]);
  });
});
