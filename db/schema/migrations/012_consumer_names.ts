import { type Kysely, sql } from 'kysely';
import { qualifyNames } from '../qualified_names.ts';

/**
 * The names of consumers, which claims set; several consumers may have the same. Only this service knows the table. A name stays when any
 * program rewrites the consumer, and the trigger of terms (migration 008) removes the name with the consumer. Claims that wait store the
 * names that they will set.
 *
 * The table has pages that are never released, as in migration 008.
 *
 * It locks the table of claims that wait only, and in the end.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table if not exists consumer_names (
    consumer_id integer primary key,
    name varchar(255) not null)`.execute(db);
  await sql`alter table consumer_names set (vacuum_truncate = off)`.execute(db);
  await sql`create index if not exists consumer_names_name_idx on consumer_names (name)`.execute(db);
  await sql`insert into consumer_names select -n, '' from generate_series(1, 4000) as n on conflict do nothing`.execute(
    db,
  );
  await sql`delete from consumer_names where consumer_id < 0`.execute(db);
  for (const [name, text] of Object.entries(functions)) {
    await sql`create or replace function ${sql.raw(name)}() returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
  await qualifyNames(db, Object.keys(functions));
  await sql`alter table waiting add column if not exists names text[]`.execute(db);
}

const functions: Readonly<Record<string, string>> = {
  terms_gone: `begin
  delete from consumer_terms where consumer_id = any(array(select id from old_rows));
  if exists (select from consumer_names where consumer_id = any(array(select id from old_rows))) then
    delete from consumer_names where consumer_id = any(array(select id from old_rows));
  end if;
  if current_setting('placement.former_consumers', true) is distinct from 'none' then
    insert into former_consumers as f (uuid, generations) select uuid, greatest(generation, 0)::bigint + 1 from old_rows
      on conflict (uuid) do update set generations = f.generations + excluded.generations, removed_at = excluded.removed_at;
  end if;
  return null;
end`,
  terms_truncated: `begin
  delete from consumer_terms;
  delete from consumer_names;
  delete from former_consumers;
  return null;
end`,
};
