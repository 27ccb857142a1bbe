import { type Kysely, sql } from 'kysely';
import { lockTogether } from '../brief_locks.ts';
import { qualifyNames } from '../qualified_names.ts';

/**
 * Stored entity tags stay right where two programs write at once:
 *
 * - Where a project, a user, a consumer type or a provider gets another name, or a provider another parent, the rows with the tags are
 *   locked before the tags are computed, in the order of all writers. A statement that computes a tag and then waits for its row does not
 *   see what the other program has committed meanwhile, such as an allocation.
 * - A consumer record that is new, or has another UUID, has no tag until its allocations are written, if the statement brings none.
 *   Allocations that were there before may be changed by a transaction that does not see the record, and so does not correct its tag.
 *   Where there is no tag, answers have one that is computed.
 *
 * Also, usages are in doubt (migration 010) where a consumer record gets another UUID, and so other allocations; and the deletion of all
 * that a consumer without a record holds is logged also while the history (migration 014) is not complete. Since migration 018 this
 * deletion was not logged, as no open record ended.
 *
 * It locks the table of consumers only, and in the end.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, text] of Object.entries(functions)) {
    await sql`create or replace function ${sql.raw(name)}() returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
  const { rows } = await sql<{ readonly definition: string }>`
    select pg_get_functiondef(oid) as definition from pg_proc
    where pronamespace = quote_ident(current_schema())::regnamespace and proname = 'record_allocations_deleted'`.execute(
    db,
  );
  for (const { definition } of rows) {
    await sql
      .raw(definition.replace(/\belse\n.*settle_usage_records\(uuids\);/, (text) => text + logIncomplete))
      .execute(db);
  }
  await qualifyNames(db, [
    ...Object.keys(functions),
    'record_allocations_deleted',
    'etag_of_allocations',
    'etag_of_provider',
    'etag_consumers',
  ]);
  await lockTogether(db, ['consumers'], 'share row exclusive');
  await sql.raw(ownerTrigger).execute(db);
}

/** Logs the consumers after their records were locked, as in migration 014. */
const logIncomplete = `
    if exists (select from usage_history where not is_complete) then
      insert into provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
      select null, true, case at_end when 'term' then 128 + 512 else 128 end, case when cardinality(uuids) <= 2000 then uuids end,
        clock_timestamp();
    end if;`;

/** Locks the consumers of an owner or a type, and then makes their tags. */
const tagConsumersOf = (column: string) => `perform from consumers where ${column} = new.id order by uuid for update;
    update consumers c set etag = etag_of_allocations(c) where ${column} = new.id`;

const functions: Readonly<Record<string, string>> = {
  etag_owner_changed: `begin
  if tg_table_name = 'projects' then
    ${tagConsumersOf('project_id')};
  elsif tg_table_name = 'users' then
    ${tagConsumersOf('user_id')};
  else
    ${tagConsumersOf('consumer_type_id')};
  end if;
  return null;
end`,
  // As in migration 004, but without a tag for a record that is new or gets another UUID. A new record has no former UUID here. The trigger
  // for new records stays, since DROP TRIGGER waits for readers, such as a dump.
  etag_consumer_row: `begin
  new.etag := case when new.uuid = old.uuid then etag_of_allocations(new) end;
  return new;
end`,
  // As in migration 006, but the rows are locked before. Children show the UUID of their parent.
  etag_provider_changed: `declare
  ids integer[] := array[new.id];
begin
  insert into inventory_changes (provider_id) values (new.id);
  insert into resource_provider_etags (resource_provider_id) values (new.id) on conflict do nothing;
  if new.uuid <> old.uuid then
    ids := ids || array(select id from resource_providers where parent_provider_id = new.id);
    insert into provider_changes (provider_id, whole, uuid) values (new.id, true, old.uuid), (new.id, true, new.uuid);
  end if;
  perform from resource_provider_etags where resource_provider_id = any(ids) order by resource_provider_id for update;
  update resource_provider_etags e set provider = (
    select etag_of_provider(p) from resource_providers p where p.id = e.resource_provider_id
  ) where resource_provider_id = any(ids);
  if new.uuid <> old.uuid then
    perform etag_consumers(array(select consumer_id from allocations where resource_provider_id = new.id));
  end if;
  return null;
end`,
  usages_moved: `begin
  if current_setting('placement.usages', true) is distinct from 'counted' and exists (select from usage_counting) then
    insert into doubtful_usages values (old.project_id), (new.project_id);
    if new.uuid <> old.uuid then insert into doubtful_usages values (null); end if;
  end if;
  return null;
end`,
};

const ownerTrigger = `create or replace trigger usages_moved after update of uuid, project_id, consumer_type_id on consumers for each row
  when (old.uuid is distinct from new.uuid or old.project_id is distinct from new.project_id
    or old.consumer_type_id is distinct from new.consumer_type_id)
  execute function usages_moved()`;
