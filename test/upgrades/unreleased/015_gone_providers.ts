import { type Kysely, sql } from 'kysely';

/**
 * The short log `inventory_changes` also has each provider that was deleted: a claim by query relies on providers that it takes nothing
 * from, and one without inventories, traits and aggregates left no row there.
 *
 * The function `lost_race` ends a statement whose guards do not agree, as a serialization failure: nothing of it is written, and it is
 * judged again (see db/statements/claims/write_claims.ts).
 *
 * It only makes and replaces functions, so it locks no table.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [signature, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\nend`;
    await sql`create or replace function ${sql.raw(signature)} language plpgsql as ${sql.lit(text)}`.execute(db);
  }
}

const functions: Readonly<Record<string, string>> = {
  // As in migration 010, with the second statement.
  'log_provider_rows_deleted() returns trigger': `insert into provider_changes (provider_id, whole, uuid)
  select id, true, uuid from old_rows;
  insert into inventory_changes (provider_id) select id from old_rows;
  return null`,
  'lost_race() returns boolean': `raise exception 'A guarded row is not as it was when the statement began.'
    using errcode = 'serialization_failure'`,
};
