import { type Kysely, sql } from 'kysely';

/**
 * Former consumers: how many generations the removed consumers with a UUID had together. A consumer that is made again
 * begins at generation 1, as in OpenStack Placement. From microversion 1.40 on its generation goes on after those of the
 * former ones: the sum is added where it is shown and where it is compared. So a client that knows a former consumer has
 * a generation that the new one never has.
 *
 * The trigger of migration 013 writes the rows, so that deletions by other programs and older releases count as well. Each
 * former consumer counts one more than its last generation, because OpenStack Placement also makes records with
 * generation 0. Who removes a record that was never seen, or truncates the table of consumers, leaves no former ones.
 *
 * As in migration 011, the table gets some pages that are never given back, so that no connection plans to read the whole
 * table. It only adds a table and replaces functions, so it locks no other table.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table former_consumers (
    uuid varchar(36) collate "C" primary key,
    generations bigint not null,
    removed_at timestamptz not null default now())`.execute(db);
  await sql`alter table former_consumers set (vacuum_truncate = off)`.execute(db);
  await sql`insert into former_consumers (uuid, generations) select lpad(n::text, 36, '-'), 0 from generate_series(1, 4000) as n`.execute(
    db,
  );
  await sql`delete from former_consumers`.execute(db);
  await sql`create function former_generations(uuids text[]) returns json language plpgsql as ${sql.lit(formerGenerations)}`.execute(
    db,
  );
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body}\n  return null;\nend`;
    await sql`create or replace function ${sql.raw(name)} returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
}

/**
 * For the statement that makes consumers. In a function a query sees what was committed before it began, and not only before
 * the statement: the former consumer may have been removed while the statement waited for a lock.
 */
const formerGenerations = `begin
  return (
    select json_object_agg(made.uuid, coalesce((select generations from former_consumers f where f.uuid = made.uuid), 0))
    from unnest(uuids) as made (uuid)
  );
end`;

const functions: Readonly<Record<string, string>> = {
  'terms_gone()': `delete from consumer_terms where consumer_id = any(array(select id from old_rows));
  if current_setting('placement.former_consumers', true) is distinct from 'none' then
    insert into former_consumers as f (uuid, generations) select uuid, greatest(generation, 0)::bigint + 1 from old_rows
      on conflict (uuid) do update set generations = f.generations + excluded.generations, removed_at = excluded.removed_at;
  end if;`,
  'terms_truncated()': `delete from consumer_terms;
  delete from former_consumers;`,
};
