import { type Kysely, sql } from 'kysely';
import { lockTogether } from '../brief_locks.ts';

/**
 * Stores entity tags (src/placement/entity_tag.ts) beside the content that they describe. The service never reads them:
 * the tags that it sends and compares are computed from the content. They are correct whatever program writes,
 * including upstream's Placement and psql, since triggers write them in the statement that changes the content. Rows
 * from before this migration have no tag until the online data migration backfill_etags.
 *
 * Two choices make claims cheaper. The tags of a provider and its parts are in a separate table, since every claim
 * writes a new version of the provider's row, which would be 528 bytes longer. And a claim writes the tags of its
 * consumers itself; it sets `placement.etags`, so that the triggers compute none.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table resource_provider_etags (
    resource_provider_id integer primary key,
    provider varchar(132),
    inventories varchar(132),
    traits varchar(132),
    aggregates varchar(132))`.execute(db);
  for (const [signature, body] of Object.entries(expressions)) {
    await sql`create function ${sql.raw(signature)} language sql stable as ${sql.lit(body)}`.execute(db);
  }
  for (const [signature, query] of Object.entries(tags)) {
    const text = `begin\n  return (${query});\nend`;
    await sql`create function ${sql.raw(signature)} language plpgsql stable as ${sql.lit(text)}`.execute(db);
  }
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\nend`;
    await sql`create or replace function ${sql.raw(name)} language plpgsql as ${sql.lit(text)}`.execute(db);
  }
  await lockTogether(db, tables, 'access exclusive');
  const columns = ['inventories', 'consumers', 'resource_classes', 'traits'].map(
    (table) => `alter table ${table} add column etag varchar(132)`,
  );
  // Sent at once, so that the tables are locked for one round trip.
  await sql.raw([...columns, ...triggers.map((trigger) => `create trigger ${trigger}`)].join(';')).execute(db);
}

/** The tables that get columns or triggers. */
const tables = (
  'allocations resource_providers inventories resource_provider_traits resource_provider_aggregates placement_aggregates ' +
  'resource_classes traits consumers projects users consumer_types'
).split(' ');

/** The parts of tags, and the tags that depend only on their own row. */
const expressions: Readonly<Record<string, string>> = {
  'etag_of(content text) returns text': `select 'W/"' || encode(sha512(convert_to(content, 'UTF8')), 'hex') || '"'`,
  // From 2^52 on JavaScript may write fewer digits than PostgreSQL, which does not use a number halfway to the next
  // double.
  'etag_large_number(value double precision) returns text': `select case when value < 0 then '-' else '' end
      || case when abs(value) < 1e21 then digits
        else left(digits, 1) || rtrim('.' || substr(rtrim(digits, '0'), 2), '.') || 'e+' || length(digits) - 1 end
    from (select greatest(0, floor(log(2, abs(value)::numeric))::integer - 60) as scale) as s,
      lateral (select (abs(value) / 2::double precision ^ scale)::bigint * 2::numeric ^ scale as exact) as e,
      generate_series(1, 17) as count,
      lateral (select round(exact, count - length(trunc(exact)::text)) as rounded) as r,
      lateral (select trunc(rounded)::text as digits) as d
    where rounded::double precision = abs(value) order by count limit 1`,
  // As JavaScript writes numbers: with an exponent below 1e-6 and from 1e21 on. Rounding must not overflow; clients may
  // send 3.4e38.
  'etag_number(value double precision) returns text': `select case
    when value = 0 or abs(value) >= 1e-6 and abs(value) < 4503599627370496 then trim_scale(value::text::numeric)::text
    when abs(value) < 1e-6 or abs(value) >= 1e300 then replace(value::text, 'e-0', 'e-')
    else etag_large_number(value) end`,
  'etag_name(name text) returns text': `select etag_of('{"name":' || to_json(name)::text || '}')`,
  'etag_inventory(i inventories) returns text': `select '{"allocation_ratio":' || etag_number(i.allocation_ratio)
    || ',"max_unit":' || i.max_unit || ',"min_unit":' || i.min_unit || ',"reserved":' || i.reserved
    || ',"step_size":' || i.step_size || ',"total":' || i.total || '}'`,
};

/**
 * The tags that depend on other rows. Names are sorted by bytes, as JavaScript does. Referenced rows are looked up
 * separately for each row, so that no plan reads a whole table, however old its statistics are. The functions are in
 * PL/pgSQL, which plans them once per connection; functions in SQL are planned again by each statement that calls them.
 */
const tags: Readonly<Record<string, string>> = {
  'etag_of_provider(p resource_providers) returns text': `select etag_of('{"name":' || to_json(coalesce(p.name, ''))::text
    || ',"parent_provider_uuid":' || coalesce(
      (select to_json(parent.uuid)::text from resource_providers parent where parent.id = p.parent_provider_id), 'null')
    || ',"uuid":' || to_json(p.uuid)::text || '}')`,
  'etag_of_inventories(provider_id integer) returns text': `select etag_of('{' || coalesce(string_agg(
      to_json(name)::text || ':' || content, ',' order by name collate "C"), '') || '}')
    from (
      select etag_inventory(i) as content, coalesce(
        (select c.name from resource_classes c where c.id = i.resource_class_id), 'unknown id ' || i.resource_class_id) as name
      from inventories i where i.resource_provider_id = provider_id
    ) as held`,
  'etag_of_traits(provider_id integer) returns text': `select etag_of('[' || coalesce(string_agg(
      to_json(name)::text, ',' order by name collate "C"), '') || ']')
    from (
      select (select t.name from traits t where t.id = h.trait_id) as name
      from resource_provider_traits h where h.resource_provider_id = provider_id
    ) as held`,
  'etag_of_aggregates(provider_id integer) returns text': `select etag_of('[' || coalesce(string_agg(
      to_json(uuid)::text, ',' order by uuid collate "C"), '') || ']')
    from (
      select (select a.uuid from placement_aggregates a where a.id = m.aggregate_id) as uuid
      from resource_provider_aggregates m where m.resource_provider_id = provider_id
    ) as held`,
  // Null if the consumer has no allocations, or its owner does not exist. If an allocation exists twice, the last one
  // counts.
  'etag_of_allocations(c consumers) returns text': `select etag_of('{"allocations":{'
      || string_agg(to_json(uuid)::text || ':{"resources":{' || resources || '}}', ',' order by uuid collate "C")
      || '},"consumer_type":' || to_json(coalesce((select t.name from consumer_types t where t.id = c.consumer_type_id), 'unknown'))::text
      || ',"project_id":' || (select to_json(p.external_id)::text from projects p where p.id = c.project_id)
      || ',"user_id":' || (select to_json(u.external_id)::text from users u where u.id = c.user_id) || '}')
    from (
      select (select p.uuid from resource_providers p where p.id = resource_provider_id) as uuid,
        string_agg(to_json(name)::text || ':' || used, ',' order by name collate "C") as resources
      from (
        select distinct on (a.resource_provider_id, a.resource_class_id) a.resource_provider_id, a.used,
          (select k.name from resource_classes k where k.id = a.resource_class_id) as name
        from allocations a where a.consumer_id = c.uuid
        order by a.resource_provider_id, a.resource_class_id, a.id desc
      ) as last_ones
      where name is not null group by resource_provider_id
    ) as held where uuid is not null`,
};

const ids = (column: string, rows: string) => `array(select distinct ${column} from ${rows})`;
const logWhole = (rows: string) => `insert into provider_changes (provider_id, whole)
    select distinct resource_provider_id, true from ${rows}`;
const bothTables = `(select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows`;
/**
 * Logs as migration 002 does; then writes the tags, if there was a row: every claim runs three of these triggers
 * without rows.
 */
const logParts = (rows: string) => `${logWhole(rows)};
  if found then perform etag_parts(tg_table_name, ${ids('resource_provider_id', rows)}); end if;
  return null`;
const usage = (sign: string, rows: string) =>
  `select resource_provider_id, resource_class_id, sum(${sign}used)::bigint as delta from ${rows} group by 1, 2`;
const logAllocations = (
  deltas: string,
  consumers: string,
) => `insert into provider_changes (provider_id, whole, class_ids, used_deltas)
    select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
    from (${deltas}) as moved where delta <> 0 group by resource_provider_id;
  if current_setting('placement.etags', true) is distinct from 'written' then
    perform etag_consumers(array(${consumers}));
  end if;
  return null`;

/**
 * For statements on a few rows by their keys. They are planned once: by default PostgreSQL would plan each call with an
 * array of one element again. And they use the index, even if they were planned when the table was empty.
 */
const byKeys = 'set plan_cache_mode = force_generic_plan set enable_seqscan = off';

const functions: Readonly<Record<string, string>> = {
  // The rows are locked first, so that the next statement sees what other transactions committed while this one waited.
  [`etag_parts(part text, ids integer[]) returns void ${byKeys}`]: `insert into resource_provider_etags (resource_provider_id)
    select id from resource_providers where id = any(ids) order by id on conflict do nothing;
  perform from resource_provider_etags where resource_provider_id = any(ids) order by resource_provider_id for update;
  if part = 'inventories' then
    update resource_provider_etags set inventories = etag_of_inventories(resource_provider_id)
      where resource_provider_id = any(ids);
  elsif part = 'resource_provider_traits' then
    update resource_provider_etags set traits = etag_of_traits(resource_provider_id) where resource_provider_id = any(ids);
  else
    update resource_provider_etags set aggregates = etag_of_aggregates(resource_provider_id)
      where resource_provider_id = any(ids);
  end if`,
  [`etag_consumers(uuids text[]) returns void ${byKeys}`]: `perform from consumers where uuid = any(uuids) order by uuid for update;
  update consumers c set etag = etag_of_allocations(c) where uuid = any(uuids)`,

  'log_provider_parts_inserted() returns trigger': logParts('new_rows'),
  'log_provider_parts_deleted() returns trigger': logParts('old_rows'),
  'log_provider_parts_updated() returns trigger': `if current_setting('placement.etags', true) = 'only' then return null; end if;
  ${logParts(bothTables)}`,
  'log_allocations_inserted() returns trigger': logAllocations(
    usage('', 'new_rows'),
    'select consumer_id from new_rows',
  ),
  'log_allocations_deleted() returns trigger': logAllocations(
    usage('-', 'old_rows'),
    'select consumer_id from old_rows',
  ),
  'log_allocations_updated() returns trigger': logAllocations(
    `select resource_provider_id, resource_class_id, sum(delta)::bigint as delta from
      (${usage('', 'new_rows')} union all ${usage('-', 'old_rows')}) as both_sides group by 1, 2`,
    'select consumer_id from new_rows union select consumer_id from old_rows',
  ),

  'etag_name_row() returns trigger': 'new.etag := etag_name(new.name);\n  return new',
  'etag_inventory_row() returns trigger': 'new.etag := etag_of(etag_inventory(new));\n  return new',
  'etag_consumer_row() returns trigger': 'new.etag := etag_of_allocations(new);\n  return new',
  'etag_provider_made() returns trigger': `insert into resource_provider_etags
    values (new.id, etag_of_provider(new), etag_of_inventories(new.id), etag_of_traits(new.id), etag_of_aggregates(new.id))
    on conflict (resource_provider_id) do update set provider = excluded.provider;
  return null`,
  // The tags of its children and of the consumers with allocations on it contain its UUID. Only other programs change a
  // UUID.
  'etag_provider_changed() returns trigger': `insert into resource_provider_etags (resource_provider_id, provider)
    values (new.id, etag_of_provider(new))
    on conflict (resource_provider_id) do update set provider = excluded.provider;
  if new.uuid <> old.uuid then
    update resource_provider_etags e set provider = etag_of_provider(child) from resource_providers child
      where child.parent_provider_id = new.id and e.resource_provider_id = child.id;
    perform etag_consumers(array(select consumer_id from allocations where resource_provider_id = new.id));
  end if;
  return null`,
  'etag_provider_gone() returns trigger': `delete from resource_provider_etags where resource_provider_id = old.id;
  perform etag_consumers(array(select consumer_id from allocations where resource_provider_id = old.id));
  return null`,
  'etag_class_changed() returns trigger': `perform etag_parts('inventories', array(
    select resource_provider_id from inventories where resource_class_id in (old.id, new.id)));
  perform etag_consumers(array(select consumer_id from allocations where resource_class_id in (old.id, new.id)));
  return null`,
  'etag_trait_changed() returns trigger': `perform etag_parts('resource_provider_traits', array(
    select resource_provider_id from resource_provider_traits where trait_id = new.id));
  return null`,
  'etag_aggregate_changed() returns trigger': `perform etag_parts('resource_provider_aggregates', array(
    select resource_provider_id from resource_provider_aggregates where aggregate_id = old.id));
  return null`,
  'etag_owner_changed() returns trigger': `if tg_table_name = 'projects' then
    update consumers c set etag = etag_of_allocations(c) where project_id = new.id;
  elsif tg_table_name = 'users' then
    update consumers c set etag = etag_of_allocations(c) where user_id = new.id;
  else
    update consumers c set etag = etag_of_allocations(c) where consumer_type_id = new.id;
  end if;
  return null`,
  'etag_truncated() returns trigger': `update consumers set etag = null where etag is not null;
  delete from resource_provider_etags;
  return null`,
};

/** Compares column by column: each time PostgreSQL reads back a comparison of whole rows, it prints it differently. */
const differs = (...columns: readonly string[]) =>
  columns.map((column) => `new.${column} is distinct from old.${column}`).join(' or ');

const triggers: readonly string[] = [
  `etag_row before insert or update of name on resource_classes for each row when (new.name like 'CUSTOM\\_%')
    execute function etag_name_row()`,
  `etag_row before insert or update of name on traits for each row when (new.name like 'CUSTOM\\_%')
    execute function etag_name_row()`,
  `etag_row before insert or update of total, reserved, min_unit, max_unit, step_size, allocation_ratio on inventories
    for each row execute function etag_inventory_row()`,
  // A claim writes the tag itself. Other statements may create a consumer for old allocations.
  'etag_made before insert on consumers for each row when (new.etag is null) execute function etag_consumer_row()',
  // A claim that changes the owner writes another tag itself. A consumer without allocations has no tag before and
  // after.
  `etag_row before update on consumers for each row
    when (new.etag is not distinct from old.etag and (${differs('uuid', 'project_id', 'user_id', 'consumer_type_id')}))
    execute function etag_consumer_row()`,
  'etag_made after insert on resource_providers for each row execute function etag_provider_made()',
  `etag_changed after update of uuid, name, parent_provider_id on resource_providers for each row
    when (${differs('uuid', 'name', 'parent_provider_id')})
    execute function etag_provider_changed()`,
  'etag_gone after delete on resource_providers for each row execute function etag_provider_gone()',
  'etag_changed after insert or delete or update of id, name on resource_classes for each row execute function etag_class_changed()',
  'etag_changed after update of name on traits for each row execute function etag_trait_changed()',
  'etag_changed after update of uuid on placement_aggregates for each row execute function etag_aggregate_changed()',
  'etag_gone after delete on placement_aggregates for each row execute function etag_aggregate_changed()',
  'etag_changed after update of external_id on projects for each row execute function etag_owner_changed()',
  'etag_changed after update of external_id on users for each row execute function etag_owner_changed()',
  'etag_changed after update of name on consumer_types for each row execute function etag_owner_changed()',
  ...[
    'allocations',
    'resource_providers',
    'inventories',
    'resource_provider_traits',
    'resource_provider_aggregates',
    'placement_aggregates',
    'resource_classes',
  ].map((table) => `etag_truncate after truncate on ${table} for each statement execute function etag_truncated()`),
];
