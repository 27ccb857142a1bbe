import { type Kysely, sql } from 'kysely';

/**
 * Who changes providers may bring their entity tags along, and says so by the setting `placement.etags`: the triggers of
 * migration 004 have nothing to do then. They still log the change, and give others their tags.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\nend`;
    await sql`create or replace function ${sql.raw(name)} returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
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
  'log_provider_parts_inserted()': logParts('new_rows'),
  'log_provider_parts_deleted()': logParts('old_rows'),
  'log_provider_parts_updated()': `if current_setting('placement.etags', true) = 'only' then return null; end if;
  ${logParts('(select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows')}`,
};

const triggers: readonly string[] = [
  `etag_row before insert or update of total, reserved, min_unit, max_unit, step_size, allocation_ratio on inventories
    for each row when (${areNotBrought}) execute function etag_inventory_row()`,
  `etag_made after insert on resource_providers
    for each row when (${areNotBrought}) execute function etag_provider_made()`,
];
