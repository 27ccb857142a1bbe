import { type Kysely, sql } from 'kysely';
import { addMissingColumns, type Columns } from '../../../db/schema/missing_table.ts';

/**
 * The change log tells which parts of a provider changed, and the UUID of a provider that was made or deleted, for clients that
 * follow it (GET /changes).
 *
 * - `parts` is a sum of bits, as `db/fleet/changed_parts.ts` names them; null means all. Rows without `whole` need none: where they
 *   have `class_ids`, usages changed, else only the generation or the times.
 * - `uuid` is set where a provider was made, deleted, or got another UUID: later its id may belong to no row. In all other rows it is
 *   null, so that claims log what they logged before.
 * - A row with a null provider_id and `whole` tells by `parts` whether traits or resource classes changed. Where one was renamed, a
 *   row has its id in `class_ids`: all providers that have it show the new name.
 *
 * No request waits for the rest, which only replaces functions.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\n  return null;\nend`;
    await sql`create or replace function ${sql.raw(name)} returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
  await addMissingColumns(db, changedParts);
}

/** The columns that the migration adds. */
const changedParts: Columns = {
  table: 'provider_changes',
  columns: { uuid: 'varchar(36)', parts: 'smallint' },
};

const [inventories, traits, aggregates, usages] = [2, 4, 8, 16];
/** The provider itself; and with its parent, so that its descendants may have another root. */
const [provider, moved] = [1, 1 + 32];
/** The part that the rows of a table belong to. An inventory that is added or removed also adds or removes a usage. */
const logPart = (rows: string) => `insert into provider_changes (provider_id, whole, parts)
    select distinct resource_provider_id, true, case tg_table_name when 'inventories' then ${inventories + usages}
      when 'resource_provider_traits' then ${traits} else ${aggregates} end from ${rows}`;

/** As in migration 009, with the part. */
const logParts = (rows: string, insert = logPart(rows)) => `${insert};
  if found then
    insert into inventory_changes (provider_id) select distinct resource_provider_id from ${rows};
    if current_setting('placement.etags', true) is distinct from 'providers' then
      perform etag_parts(tg_table_name, array(select distinct resource_provider_id from ${rows}));
    end if;
  end if`;
const bothTables =
  '(select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows';
const logRenamed = (part: number, ids: string) => `insert into provider_changes (provider_id, whole, class_ids, parts)
    values (null, true, ${ids}, ${part})`;

const functions: Readonly<Record<string, string>> = {
  'log_provider_parts_inserted()': logParts('new_rows'),
  'log_provider_parts_deleted()': logParts('old_rows'),
  // An inventory that keeps its class and its provider changes no usage.
  'log_provider_parts_updated()': `if current_setting('placement.etags', true) = 'only' then return null; end if;
  ${logParts(
    bothTables,
    `if tg_table_name = 'inventories' then
    insert into provider_changes (provider_id, whole, parts)
      select distinct resource_provider_id, true, ${inventories} + case when exists (
        select resource_provider_id, resource_class_id from new_rows
        except select resource_provider_id, resource_class_id from old_rows) then ${usages} else 0 end from ${bothTables};
  else
    ${logPart(bothTables)};
  end if`,
  )}`,
  'log_provider_rows_inserted()': `insert into provider_changes (provider_id, whole, uuid)
  select id, true, uuid from new_rows`,
  'log_provider_rows_deleted()': `insert into provider_changes (provider_id, whole, uuid)
  select id, true, uuid from old_rows`,
  'log_provider_rows_updated()': `insert into provider_changes (provider_id, whole, parts)
  select n.id, (n.uuid, n.name, n.root_provider_id, n.parent_provider_id) is distinct from
    (o.uuid, o.name, o.root_provider_id, o.parent_provider_id),
    case when n.parent_provider_id is distinct from o.parent_provider_id then ${moved} else ${provider} end
  from new_rows n join old_rows o using (id)`,
  'log_names_changed()': `insert into provider_changes (provider_id, whole, parts)
  values (null, true, case tg_table_name when 'traits' then ${traits} else ${inventories} end)`,
  // As in migration 009, with rows for the old UUID and the new one.
  'etag_provider_changed()': `insert into inventory_changes (provider_id) values (new.id);
  insert into resource_provider_etags (resource_provider_id, provider)
    values (new.id, etag_of_provider(new))
    on conflict (resource_provider_id) do update set provider = excluded.provider;
  if new.uuid <> old.uuid then
    insert into provider_changes (provider_id, whole, uuid) values (new.id, true, old.uuid), (new.id, true, new.uuid);
    update resource_provider_etags e set provider = etag_of_provider(child) from resource_providers child
      where child.parent_provider_id = new.id and e.resource_provider_id = child.id;
    perform etag_consumers(array(select consumer_id from allocations where resource_provider_id = new.id));
  end if`,
  // As in migration 004, with a row for the name.
  'etag_class_changed()': `${logRenamed(inventories, 'array[old.id, new.id]')};
  perform etag_parts('inventories', array(
    select resource_provider_id from inventories where resource_class_id in (old.id, new.id)));
  perform etag_consumers(array(select consumer_id from allocations where resource_class_id in (old.id, new.id)))`,
  'etag_trait_changed()': `${logRenamed(traits, 'array[new.id]')};
  perform etag_parts('resource_provider_traits', array(
    select resource_provider_id from resource_provider_traits where trait_id = new.id))`,
};
