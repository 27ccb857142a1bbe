import { type Kysely, sql } from 'kysely';
import { lockTogether } from '../brief_locks.ts';

/**
 * A statement that changes providers may write their entity tags itself, and sets `placement.etags` then: the triggers
 * of migration 004 compute no tags. They still log the change, and compute the tags for statements without this
 * setting.
 *
 * A part may have another tag than the content which the statement was made for: another program changed the part
 * without raising the provider's generation. Then the statement sets the tag to null. It cannot see the content itself;
 * a trigger, whose statements see it, computes the tag.
 *
 * Also, a provider that is deleted while a class of its inventories is renamed leaves no row of tags.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\nend`;
    await sql`create or replace function ${sql.raw(name)} language plpgsql as ${sql.lit(text)}`.execute(db);
  }
  await lockTogether(db, ['resource_providers', 'inventories', 'resource_provider_etags'], 'share row exclusive');
  for (const trigger of triggers) await sql.raw(`create or replace trigger ${trigger}`).execute(db);
}

const areNotBrought = `current_setting('placement.etags', true) is distinct from 'providers'`;

const logParts = (rows: string) => `insert into provider_changes (provider_id, whole)
    select distinct resource_provider_id, true from ${rows};
  if found and ${areNotBrought} then
    perform etag_parts(tg_table_name, array(select distinct resource_provider_id from ${rows}));
  end if;
  return null`;

const functions: Readonly<Record<string, string>> = {
  'log_provider_parts_inserted() returns trigger': logParts('new_rows'),
  'log_provider_parts_deleted() returns trigger': logParts('old_rows'),
  'log_provider_parts_updated() returns trigger': `if current_setting('placement.etags', true) = 'only' then return null; end if;
  ${logParts('(select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows')}`,

  // As in migration 004, but the providers are locked: a row for a provider that is being deleted would be inserted
  // after the trigger that deletes it.
  'etag_parts(part text, ids integer[]) returns void set plan_cache_mode = force_generic_plan set enable_seqscan = off': `insert into resource_provider_etags (resource_provider_id)
    select id from resource_providers where id = any(ids) order by id for key share on conflict do nothing;
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

  'etag_doubted() returns trigger': `if new.inventories is null then perform etag_parts('inventories', array[new.resource_provider_id]); end if;
  if new.traits is null then perform etag_parts('resource_provider_traits', array[new.resource_provider_id]); end if;
  if new.aggregates is null then perform etag_parts('resource_provider_aggregates', array[new.resource_provider_id]); end if;
  return null`,
};

const isTaken = (part: string) => `(new.${part} is null and old.${part} is not null)`;

const triggers: readonly string[] = [
  `etag_row before insert or update of total, reserved, min_unit, max_unit, step_size, allocation_ratio on inventories
    for each row when (${areNotBrought}) execute function etag_inventory_row()`,
  `etag_made after insert on resource_providers
    for each row when (${areNotBrought}) execute function etag_provider_made()`,
  `etag_doubted after update of inventories, traits, aggregates on resource_provider_etags for each row
    when (${['inventories', 'traits', 'aggregates'].map(isTaken).join(' or ')}) execute function etag_doubted()`,
];
