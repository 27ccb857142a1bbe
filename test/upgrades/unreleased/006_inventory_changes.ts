import { type Kysely, sql } from 'kysely';

/**
 * Logs which transactions changed inventories in a separate table: the statement that writes claims reads it (see
 * db/statements/claims/write_claims.ts). It has few rows, while the change log has rows of every claim. A null
 * provider_id means the inventories of all providers (a TRUNCATE).
 *
 * No request waits for this migration, since it creates a table and replaces functions. An index on those rows of the
 * change log would be created under a lock that blocks every writer.
 *
 * Both logs also get some twenty pages that are never given back. For a table of one page the planner chooses to read
 * all of it. A connection keeps that plan while the log grows, until the table is analysed: with 300,000 rows it takes
 * 20 ms for each statement.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table inventory_changes (
    xid xid8 not null default pg_current_xact_id(),
    provider_id integer)`.execute(db);
  await sql`create index inventory_changes_xid_idx on inventory_changes (xid)`.execute(db);
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\n  return null;\nend`;
    await sql`create or replace function ${sql.raw(name)} returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
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

/** As in migration 005. For most claims, which change no inventories, only the first statement runs. */
const logParts = (rows: string) => `insert into provider_changes (provider_id, whole)
    select distinct resource_provider_id, true from ${rows};
  if found then
    if tg_table_name = 'inventories' then
      insert into inventory_changes (provider_id) select distinct resource_provider_id from ${rows};
    end if;
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
  if tg_table_name = 'inventories' then insert into inventory_changes default values; end if`,
};
