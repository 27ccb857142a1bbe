import { type Kysely, sql } from 'kysely';
import { lockTogether } from '../brief_locks.ts';
import { qualifyNames } from '../qualified_names.ts';

/**
 * While usages are counted (migration 010), they are in doubt also where another program makes or deletes the record of a consumer that has
 * allocations, as the online data migrations of OpenStack Placement do: its project used more than was counted, and exceeded its limit.
 *
 * A new record puts its project in doubt in any case, since another transaction may have inserted allocations that are not visible yet.
 *
 * It locks the table of consumers only, and in the end.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  if ${areUnaccounted} then\n    ${body};\n  end if;\n  return null;\nend`;
    await sql`create or replace function ${sql.raw(name)}() returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
  await qualifyNames(db, Object.keys(functions));
  await lockTogether(db, ['consumers'], 'share row exclusive');
  for (const trigger of triggers) await sql.raw(`create or replace trigger ${trigger}`).execute(db);
}

/** As in migration 010. */
const areUnaccounted = `current_setting('placement.usages', true) is distinct from 'counted' and exists (select from usage_counting)`;

/** Allocations that were counted without an owner, or now have none, put all usages in doubt. */
const allIfHolding = (rows: string) => `select null::integer where exists (
      select from ${rows} r where exists (select from allocations a where a.consumer_id = r.uuid offset 0))`;

const functions: Readonly<Record<string, string>> = {
  usages_of_made_records: `insert into doubtful_usages select distinct project_id from new_rows union all ${allIfHolding('new_rows')}`,
  usages_of_deleted_records: `insert into doubtful_usages ${allIfHolding('old_rows')}`,
};

const triggers: readonly string[] = [
  `usages_made after insert on consumers referencing new table as new_rows
    for each statement execute function usages_of_made_records()`,
  `usages_deleted after delete on consumers referencing old table as old_rows
    for each statement execute function usages_of_deleted_records()`,
];
