import { type Kysely, sql } from 'kysely';

/**
 * From now on the short log `inventory_changes` has each change of a provider that a claim by query relies on: of its inventories as
 * before, and of its traits, aggregates, UUID and parent. The statement that writes claims reads it (see
 * db/statements/claims/claim_guards.ts). A null provider_id means all providers (a TRUNCATE, or a change of an aggregate itself).
 *
 * No request waits for this migration, since it only replaces functions.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\n  return null;\nend`;
    await sql`create or replace function ${sql.raw(name)} returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
}

/** As in migration 006, without the condition that the table is `inventories`. */
const logParts = (rows: string) => `insert into provider_changes (provider_id, whole)
    select distinct resource_provider_id, true from ${rows};
  if found then
    insert into inventory_changes (provider_id) select distinct resource_provider_id from ${rows};
    if current_setting('placement.etags', true) is distinct from 'providers' then
      perform etag_parts(tg_table_name, array(select distinct resource_provider_id from ${rows}));
    end if;
  end if`;

const functions: Readonly<Record<string, string>> = {
  'log_provider_parts_inserted()': logParts('new_rows'),
  'log_provider_parts_deleted()': logParts('old_rows'),
  'log_provider_parts_updated()': `if current_setting('placement.etags', true) = 'only' then return null; end if;
  ${logParts('(select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows')}`,
  'log_truncated()': `insert into provider_changes (provider_id, whole) values (null, false);
  insert into inventory_changes default values`,
  // As in migration 004. It runs only where the UUID, the name or the parent is another one, which no claim changes.
  'etag_provider_changed()': `insert into inventory_changes (provider_id) values (new.id);
  insert into resource_provider_etags (resource_provider_id, provider)
    values (new.id, etag_of_provider(new))
    on conflict (resource_provider_id) do update set provider = excluded.provider;
  if new.uuid <> old.uuid then
    update resource_provider_etags e set provider = etag_of_provider(child) from resource_providers child
      where child.parent_provider_id = new.id and e.resource_provider_id = child.id;
    perform etag_consumers(array(select consumer_id from allocations where resource_provider_id = new.id));
  end if`,
};
