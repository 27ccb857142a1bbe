import { type Kysely, sql } from 'kysely';
import { addMissingColumns, type Columns } from '../missing_table.ts';

/**
 * The change log names the changed parts of a provider, and the UUID of a provider that was made or deleted, for clients that
 * follow it (GET /changes).
 *
 * - `parts` is a sum of bits, as `db/fleet/changed_parts.ts` names them; null means all. Rows without `whole` need none: where they
 *   have `class_ids`, usages changed, else only the generation or the times.
 * - `uuid` is set where a provider was made, deleted, or got another UUID: later its id may belong to no row. In all other rows it is
 *   null, so that claims log what they logged before.
 * - A row with a null provider_id and `whole` tells by `parts` whether traits or resource classes changed. Where one was renamed, a
 *   row has its id in `class_ids`: all providers that have it show the new name.
 *
 * A claim raises the generations of providers and writes allocations of them. Where the statement says that it logs each of these
 * providers by its allocations (`placement.generations`, see write_claims.ts), the row of the generation is left out: a process that reads
 * a change of usages also reads the generation, in older releases as well.
 *
 * A shorter log, `inventory_changes`, has each change of a provider that a claim by query relies on: of its inventories, traits,
 * aggregates, UUID and parent, and its deletion. The statement that writes claims reads it (see db/statements/claims/claim_guards.ts). It
 * has few rows, while the change log has rows of every claim. A null provider_id means all providers (a TRUNCATE, or a change of an
 * aggregate itself). The function `lost_race` ends a statement whose guards do not agree, as a serialization failure: nothing of it is
 * written, and it is judged again.
 *
 * It locks the change log only, and in the end: the rest makes a table and replaces functions.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql`select where to_regclass('inventory_changes') is null`.execute(db);
  if (rows.length > 0) await createLog(db); // else by a version of development
  for (const [signature, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\nend`;
    await sql`create or replace function ${sql.raw(signature)} language plpgsql as ${sql.lit(text)}`.execute(db);
  }
  await addMissingColumns(db, changedParts);
}

/** The columns that the migration adds. */
const changedParts: Columns = {
  table: 'provider_changes',
  columns: { uuid: 'varchar(36)', parts: 'smallint' },
};

/**
 * Both logs get some twenty pages that are never released. For a table of one page the planner chooses to read all of it. A
 * connection keeps that plan while the log grows, until the table is analysed: with 300,000 rows it takes 20 ms for each statement.
 */
async function createLog(db: Kysely<unknown>): Promise<void> {
  await sql`create table inventory_changes (
    xid xid8 not null default pg_current_xact_id(),
    provider_id integer)`.execute(db);
  await sql`create index inventory_changes_xid_idx on inventory_changes (xid)`.execute(db);
  await sql`insert into inventory_changes select from generate_series(1, 4000)`.execute(db);
  await sql`delete from inventory_changes`.execute(db);
  await sql`insert into provider_changes (whole, class_ids) select false, '{}' from generate_series(1, 4000)`.execute(
    db,
  );
  await sql`delete from provider_changes where xid = pg_current_xact_id() and class_ids = '{}'`.execute(db);
  for (const table of ['inventory_changes', 'provider_changes']) {
    await sql`alter table ${sql.table(table)} set (vacuum_truncate = off)`.execute(db);
  }
}

const [inventories, traits, aggregates, usages] = [2, 4, 8, 16];
/** The provider itself; and with its parent, so that its descendants may have another root. */
const [provider, moved] = [1, 1 + 32];
/** The part that the rows of a table belong to. An inventory that is added or removed also adds or removes a usage. */
const logPart = (rows: string) => `insert into provider_changes (provider_id, whole, parts)
    select distinct resource_provider_id, true, case tg_table_name when 'inventories' then ${inventories + usages}
      when 'resource_provider_traits' then ${traits} else ${aggregates} end from ${rows}`;

/** As in migration 005, with the part and the shorter log. */
const logParts = (rows: string, insert = logPart(rows)) => `${insert};
  if found then
    insert into inventory_changes (provider_id) select distinct resource_provider_id from ${rows};
    if current_setting('placement.etags', true) is distinct from 'providers' then
      perform etag_parts(tg_table_name, array(select distinct resource_provider_id from ${rows}));
    end if;
  end if;
  return null`;
const bothTables =
  '(select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows';
const logRenamed = (part: number, ids: string) => `insert into provider_changes (provider_id, whole, class_ids, parts)
    values (null, true, ${ids}, ${part})`;

const functions: Readonly<Record<string, string>> = {
  'log_provider_parts_inserted() returns trigger': logParts('new_rows'),
  'log_provider_parts_deleted() returns trigger': logParts('old_rows'),
  // An inventory that keeps its class and its provider changes no usage.
  'log_provider_parts_updated() returns trigger': `if current_setting('placement.etags', true) = 'only' then return null; end if;
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
  'log_provider_rows_inserted() returns trigger': `insert into provider_changes (provider_id, whole, uuid)
  select id, true, uuid from new_rows;
  return null`,
  'log_provider_rows_deleted() returns trigger': `insert into provider_changes (provider_id, whole, uuid)
  select id, true, uuid from old_rows;
  insert into inventory_changes (provider_id) select id from old_rows;
  return null`,
  'log_provider_rows_updated() returns trigger': `if current_setting('placement.generations', true) is distinct from 'logged' then
    insert into provider_changes (provider_id, whole, parts)
    select n.id, (n.uuid, n.name, n.root_provider_id, n.parent_provider_id) is distinct from
      (o.uuid, o.name, o.root_provider_id, o.parent_provider_id),
      case when n.parent_provider_id is distinct from o.parent_provider_id then ${moved} else ${provider} end
    from new_rows n join old_rows o using (id);
  end if;
  return null`,
  'log_names_changed() returns trigger': `insert into provider_changes (provider_id, whole, parts)
  values (null, true, case tg_table_name when 'traits' then ${traits} else ${inventories} end);
  return null`,
  'log_truncated() returns trigger': `insert into provider_changes (provider_id, whole) values (null, false);
  insert into inventory_changes default values;
  return null`,
  // As in migration 004, with rows for the old UUID and the new one. It runs only where the UUID, the name or the parent is another one,
  // which no claim changes.
  'etag_provider_changed() returns trigger': `insert into inventory_changes (provider_id) values (new.id);
  insert into resource_provider_etags (resource_provider_id, provider)
    values (new.id, etag_of_provider(new))
    on conflict (resource_provider_id) do update set provider = excluded.provider;
  if new.uuid <> old.uuid then
    insert into provider_changes (provider_id, whole, uuid) values (new.id, true, old.uuid), (new.id, true, new.uuid);
    update resource_provider_etags e set provider = etag_of_provider(child) from resource_providers child
      where child.parent_provider_id = new.id and e.resource_provider_id = child.id;
    perform etag_consumers(array(select consumer_id from allocations where resource_provider_id = new.id));
  end if;
  return null`,
  // As in migration 004, with a row for the name.
  'etag_class_changed() returns trigger': `${logRenamed(inventories, 'array[old.id, new.id]')};
  perform etag_parts('inventories', array(
    select resource_provider_id from inventories where resource_class_id in (old.id, new.id)));
  perform etag_consumers(array(select consumer_id from allocations where resource_class_id in (old.id, new.id)));
  return null`,
  'etag_trait_changed() returns trigger': `${logRenamed(traits, 'array[new.id]')};
  perform etag_parts('resource_provider_traits', array(
    select resource_provider_id from resource_provider_traits where trait_id = new.id));
  return null`,
  'lost_race() returns boolean': `raise exception 'A guarded row is not as it was when the statement began.'
    using errcode = 'serialization_failure'`,
};
