import { type Kysely, sql } from 'kysely';

/**
 * A writer that brings the entity tag of a part of a provider along (migration 005) takes it away instead where the part had another
 * one than that of the content it knew: others changed it meanwhile, without the provider's generation. What is there then is seen
 * by the next statement only: that of a trigger.
 *
 * And a provider that is deleted while a class of its inventories gets another name leaves no tags behind.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\nend`;
    await sql`create or replace function ${sql.raw(name)} language plpgsql as ${sql.lit(text)}`.execute(db);
  }
  await sql.raw(`create trigger ${trigger}`).execute(db);
}

const functions: Readonly<Record<string, string>> = {
  // As in migration 004, but the providers are locked: a row for one that is being deleted would come after the trigger that removes it.
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

const trigger = `etag_doubted after update of inventories, traits, aggregates on resource_provider_etags for each row
  when (${['inventories', 'traits', 'aggregates'].map(isTaken).join(' or ')}) execute function etag_doubted()`;
