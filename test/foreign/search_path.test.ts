/** Triggers where no `search_path` leads to the tables: rows of pg_restore or a logical replication. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { createDatabase, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { until } from '../support/until.ts';

let server: PostgresqlServer | undefined;
before(async () => {
  server = await startPostgresql({ settings: { wal_level: 'logical' } });
});
after(() => server?.stop());

/** Two databases with the schema, of which the first one has rows. */
async function withTwo(use: (source: pg.Client, target: pg.Client) => Promise<void>): Promise<void> {
  const databases = [await createDatabase(server?.url ?? ''), await createDatabase(server?.url ?? '')];
  const [source, target] = databases.map(({ url }) => new pg.Client({ connectionString: url }));
  assert.ok(source !== undefined && target !== undefined);
  try {
    for (const { url } of databases) {
      const database = await openDatabase({ connection: url, maxPoolSize: 1 });
      await migrateToLatest(database);
      await database.close();
    }
    for (const client of [source, target]) await client.connect();
    await source.query(rows);
    await use(source, target);
  } finally {
    for (const client of [source, target]) await client.end();
    for (const { drop } of databases) await drop();
  }
}

const rows = `
insert into resource_classes (name) values ('VCPU'), ('CUSTOM_LICENSE');
insert into traits (name) values ('CUSTOM_FAST');
insert into resource_providers (uuid, name, generation, root_provider_id, parent_provider_id)
  values ('p1', 'host', 3, 1, null), ('p2', 'numa', 1, 1, 1);
insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
  values (1, 1, 16, 0, 1, 16, 1, 4.5), (2, 2, 5, 1, 1, 5, 1, 1.0);
insert into resource_provider_traits (resource_provider_id, trait_id) values (2, 1);
insert into placement_aggregates (uuid) values ('a1');
insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (1, 1);
insert into projects (external_id) values ('web');
insert into users (external_id) values ('ada');
insert into consumer_types (name) values ('INSTANCE');
insert into consumers (uuid, project_id, user_id, generation, consumer_type_id) values ('c1', 1, 1, 4, 1);
insert into allocations (resource_provider_id, consumer_id, resource_class_id, used) values (1, 'c1', 1, 2), (2, 'c1', 2, 1)`;

const tables = (
  'resource_classes traits consumer_types projects users placement_aggregates resource_providers inventories ' +
  'resource_provider_traits resource_provider_aggregates consumers allocations'
).split(' ');

/** All rows, with the entity tags that triggers make. */
async function contentOf(client: pg.Client): Promise<unknown> {
  const content: Record<string, unknown> = {};
  for (const table of [...tables, 'resource_provider_etags']) {
    const found = await client.query(`select to_jsonb(t) as row from public.${table} t order by to_jsonb(t)::text`);
    content[table] = found.rows;
  }
  return content;
}

test('rows that are restored without their tables, as by pg_dump --data-only, get their entity tags', async () => {
  await withTwo(async (source, target) => {
    // As the text that pg_dump writes begins.
    await target.query(`select pg_catalog.set_config('search_path', '', false)`);
    for (const table of tables) {
      const { rows: found } = await source.query(`select to_jsonb(t) as row from ${table} t`);
      const brought = JSON.stringify(found.map(({ row }) => row));
      const insert = `insert into public.${table} select * from jsonb_populate_recordset(null::public.${table}, $1)`;
      await target.query(insert, [brought]);
    }
    assert.deepEqual(await contentOf(target), await contentOf(source));
    // Every kind of change that a trigger watches.
    for (const client of [source, target]) {
      await client.query(`update public.resource_providers set uuid = uuid || 'x', name = name || 'x'`);
      await client.query(`update public.inventories set total = total + 1`);
      await client.query(`update public.allocations set used = used + 1`);
      for (const table of ['resource_classes', 'traits', 'consumer_types']) {
        await client.query(`update public.${table} set name = name || 'X'`);
      }
      for (const table of ['projects', 'users'])
        await client.query(`update public.${table} set external_id = external_id || 'x'`);
      await client.query(`update public.placement_aggregates set uuid = 'a2'`);
      await client.query(`update public.resource_provider_aggregates set aggregate_id = aggregate_id`);
      await client.query(`update public.resource_provider_traits set trait_id = trait_id`);
      await client.query(
        `update public.resource_provider_etags set inventories = null, traits = null, aggregates = null`,
      );
      await client.query('delete from public.allocations where id = 2');
    }
    assert.deepEqual(await contentOf(target), await contentOf(source));
    for (const table of tables.toReversed()) await target.query(`delete from public.${table}`);
    await target.query(`truncate ${tables.map((table) => `public.${table}`).join(', ')}`);
  });
});

test('a subscriber of a logical replication takes the rows, also where all its triggers run', async () => {
  await withTwo(async (source, target) => {
    const { rows: triggers } = await target.query<{ table: string; name: string }>(
      `
      select tgrelid::regclass::text as table, tgname as name from pg_trigger
      where not tgisinternal and tgrelid::regclass::text = any($1)`,
      [tables],
    );
    for (const { table, name } of triggers) await target.query(`alter table ${table} enable always trigger ${name}`);
    await source.query(`create publication placement for table ${tables.join(', ')}`);
    // On the same server a subscription cannot make the slot itself: it would wait for its own transaction.
    await source.query(`select pg_create_logical_replication_slot('placement', 'pgoutput')`);
    const { port, database } = source;
    await target.query(`create subscription placement connection 'host=127.0.0.1 port=${port} user=postgres dbname=${database}'
      publication placement with (create_slot = false, slot_name = 'placement')`);
    try {
      const isSame = async () => {
        const [ours, theirs] = [await contentOf(source), await contentOf(target)].map((content) =>
          JSON.stringify(content, (key, value) =>
            key === 'etag' || key === 'resource_provider_etags' ? undefined : value,
          ),
        );
        return ours === theirs;
      };
      await until('the first copy', isSame);
      await source.query(
        `update resource_providers set name = name || 'x', uuid = uuid || 'x'; update inventories set total = 20`,
      );
      await source.query(`delete from allocations where id = 2; update projects set external_id = 'other'`);
      await until('later changes', isSame);
      const logged = await target.query('select from provider_changes where provider_id is not null');
      assert.notEqual(logged.rowCount, 0, 'triggers ran');
    } finally {
      await target.query('alter subscription placement disable');
      await target.query('alter subscription placement set (slot_name = none); ');
      await target.query('drop subscription placement');
      await until('the slot is free', async () => {
        const { rowCount } = await source.query(
          `select from pg_replication_slots where slot_name = 'placement' and not active`,
        );
        return rowCount === 1;
      });
      await source.query(`select pg_drop_replication_slot('placement')`);
    }
  });
});
