import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { dumpSchema } from '../../db/schema/schema_dump.ts';
import { standardResourceClasses } from '../../db/schema/standard_resource_classes.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase } from '../support/postgresql.ts';
import { accepted, at, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { runToEnd } from './commands.ts';
import { remainingSteps, upstreamSchemas } from './upstream_schema.ts';

const node = '11111111-0000-4000-8000-000000000001';
const numa = '11111111-0000-4000-8000-000000000002';
const server = '22222222-0000-4000-8000-000000000001';
const oldServer = '22222222-0000-4000-8000-000000000002';
const aggregate = '33333333-0000-4000-8000-000000000001';

/**
 * A small cloud as upstream wrote it. The id of a standard class is its index in the list, and custom classes have ids
 * from 10,000 on.
 */
const rows = `
insert into resource_classes (id, name, created_at)
  select place - 1, name, '2019-01-01' from unnest($1::text[]) with ordinality as class (name, place);
insert into resource_classes (id, name, created_at) values (10001, 'CUSTOM_LICENSE', '2019-01-02');
insert into traits (name) values ('HW_CPU_X86_AVX'), ('CUSTOM_FAST');
insert into resource_providers (uuid, name, generation, root_provider_id, created_at, updated_at)
  values ('${node}', 'node', 7, 1, '2019-01-01', '2019-02-01 10:00:00');
insert into resource_providers (uuid, name, generation, root_provider_id, parent_provider_id)
  values ('${numa}', 'numa', 3, 1, 1);
insert into inventories
  (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
  values (1, 0, 16, 0, 1, 16, 1, 4.0), (2, 10001, 5, 1, 1, 5, 1, 1.0);
insert into resource_provider_traits (resource_provider_id, trait_id) values (1, 1), (2, 2);
insert into placement_aggregates (uuid) values ('${aggregate}');
insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (1, 1);
insert into projects (external_id) values ('project');
insert into users (external_id) values ('user');
insert into consumers (uuid, project_id, user_id, generation) values ('${server}', 1, 1, 4);
insert into allocations (resource_provider_id, consumer_id, resource_class_id, used)
  values (1, '${server}', 0, 2), (2, '${server}', 10001, 1), (1, '${oldServer}', 0, 8);
`;

const tables = [
  ...['allocations', 'consumers', 'inventories', 'placement_aggregates', 'projects', 'resource_provider_aggregates'],
  ...['resource_provider_traits', 'resource_providers', 'users'],
];

for (const [revision, schema] of Object.entries(upstreamSchemas)) {
  test(`db sync adopts a database that upstream left at revision ${revision}`, async (t) => {
    const { url, drop } = await createDatabase(await postgresqlServer());
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    let service: PlacementService | undefined;
    t.after(async () => {
      await service?.close();
      await client.end();
      await drop();
    });
    await client.query(schema);
    for (const statement of rows.split(';').filter((text) => text.trim() !== '')) {
      await client.query(statement, statement.includes('$1') ? [standardResourceClasses] : []);
    }
    const content = async () => {
      const found: unknown[] = [];
      for (const table of tables) {
        found.push(
          (await client.query(`select to_jsonb(t) - 'consumer_type_id' - 'etag' as row from ${table} t`)).rows,
        );
      }
      return found;
    };
    const indexesOf = async () =>
      (
        await client.query<{ indexdef: string }>("select indexdef from pg_indexes where schemaname = 'public'")
      ).rows.map(({ indexdef }) => indexdef);
    const before = await content();
    const indexes = await indexesOf();

    assert.deepEqual(await runToEnd('placement-manage', ['db', 'version'], '/', { DATABASE_URL: url }), {
      code: 0,
      stdout: `${revision}\n`,
      stderr: '',
    });
    assert.equal((await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: url })).code, 0);
    // Revisions below this lack consumer types, which the service needs. They come with the revision of upstream that
    // adds them.
    const adopted = revision === 'a082b8bb98d0' ? revision : '422ece571366';
    const version = async () =>
      (await runToEnd('placement-manage', ['db', 'version'], '/', { DATABASE_URL: url })).stdout;
    assert.equal(await version(), `${adopted}\n`);
    assert.deepEqual(await content(), before, 'no row was changed');
    const kept = await indexesOf();
    assert.deepEqual(
      indexes.filter((index) => !kept.includes(index)),
      [],
      "none of upstream's indexes was dropped",
    );

    const config = { connection: url };
    service = await openServiceOn({ settings: { connection: url, maxPoolSize: 1 }, config, drop });
    const send = requestsTo(service);
    const get = async (where: string) => accepted(await send('GET', where));
    const part = async (where: string, name: string) => at((await get(where)).json, name);
    const provider = await get(`/resource_providers/${node}`);
    assert.equal(at(provider.json, 'name'), 'node');
    assert.equal(at(provider.json, 'generation'), 7);
    assert.equal(provider.headers.get('last-modified'), 'Fri, 01 Feb 2019 10:00:00 GMT', 'times are UTC');
    assert.equal(await part(`/resource_providers/${numa}`, 'root_provider_uuid'), node);
    assert.deepEqual(await part(`/resource_providers/${node}/aggregates`, 'aggregates'), [aggregate]);
    assert.deepEqual(await part(`/resource_providers/${numa}/traits`, 'traits'), ['CUSTOM_FAST']);
    assert.deepEqual(await part(`/resource_providers/${node}/usages`, 'usages'), { VCPU: 10 });
    assert.deepEqual((await get(`/allocations/${server}`)).json, {
      allocations: {
        [node]: { resources: { VCPU: 2 }, generation: 7 },
        [numa]: { resources: { CUSTOM_LICENSE: 1 }, generation: 3 },
      },
      project_id: 'project',
      user_id: 'user',
      consumer_generation: 4,
      consumer_type: 'unknown',
    });
    assert.equal(await part(`/allocations/${oldServer}`, 'consumer_generation'), null);
    // New rows get new ids, because the sequences were kept.
    accepted(await send('POST', '/resource_providers', { name: 'another' }));
    await service.close();
    service = undefined;

    // Upstream serves again, and its next release migrates the database.
    await client.query(remainingSteps[adopted] ?? '');
    const database = await openDatabase({ connection: url, maxPoolSize: 1 });
    const committed = await readFile(path.join(import.meta.dirname, '..', '..', 'db', 'schema', 'schema.sql'), 'utf8');
    assert.equal(await dumpSchema(database), committed, 'the schema is that of a new database');
    await database.close();
    assert.equal((await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: url })).code, 0);
    assert.equal(await version(), 'a082b8bb98d0\n');
  });
}
