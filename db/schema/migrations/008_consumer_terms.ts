import { type Kysely, sql } from 'kysely';
import { qualifyNames } from '../qualified_names.ts';

/**
 * The terms of consumers. A row holds for one generation of the consumer: a consumer that still has it is removed at
 * `expires_at`. Only this service knows the table. When another program or an older release rewrites a consumer, it
 * raises the generation, and so the consumer has no term any more. When it deletes the consumer, a trigger removes the term.
 *
 * Former consumers: how many generations the removed consumers with a UUID had together. The record of a new consumer
 * begins at generation 1, as in OpenStack Placement. From microversion 2.1 on the sum is added where the generation is shown
 * and where it is compared. So a client that knows a former consumer has a generation that the new consumer never has.
 *
 * The same trigger writes them, so that deletions by other programs and older releases count as well. Each former consumer counts one more
 * than its last generation, because OpenStack Placement also makes records with generation 0. A statement that sets
 * `placement.former_consumers` to `none`, because no client has seen the record that it removes, adds none; a truncation of the table of
 * consumers removes all.
 *
 * In the end the functions of triggers, and those that they call, name tables and each other with their schema (see qualified_names.ts).
 * Rows that are restored without their tables (`pg_dump --data-only`), or that come by logical replication, run triggers with an empty
 * `search_path`.
 *
 * It locks the table of consumers only, and in the end.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // A version of development may have made some of it before.
  if (await lacks(db, 'consumer_terms')) await createTerms(db);
  if (await lacks(db, 'former_consumers')) await createFormerConsumers(db);
  for (const [signature, text] of Object.entries(functions)) {
    await sql`create or replace function ${sql.raw(signature)} language plpgsql as ${sql.lit(text)}`.execute(db);
  }
  await qualifyOurs(db);
  await sql`drop index if exists consumers_user_id_uuid_idx, consumers_type_uuid_idx`.execute(db);
  for (const trigger of triggers) await sql.raw(`create or replace trigger ${trigger}`).execute(db);
  await sql`drop function if exists term_gone()`.execute(db);
}

const lacks = async (db: Kysely<unknown>, table: string): Promise<boolean> =>
  (await sql`select where to_regclass(${table}) is null`.execute(db)).rows.length > 0;

/**
 * As the change log (migration 006), the table gets some twenty pages that are never released. For a table of one page the server would
 * plan to read the whole table, and a connection would keep this plan while thousands of terms are added.
 */
async function createTerms(db: Kysely<unknown>): Promise<void> {
  await sql`create table consumer_terms (
    consumer_id integer primary key,
    generation integer not null,
    expires_at timestamptz(3) not null)`.execute(db);
  await sql`alter table consumer_terms set (vacuum_truncate = off)`.execute(db);
  // Because of the sum the server cannot look up a single consumer by this index, which would read the whole index. With
  // statistics of an empty table that would seem as cheap as the primary key.
  await sql`create index consumer_terms_expires_at_idx on consumer_terms (expires_at, (consumer_id + 0))`.execute(db);
  await sql`insert into consumer_terms select -n, 0, 'infinity' from generate_series(1, 4000) as n`.execute(db);
  await sql`delete from consumer_terms where consumer_id < 0`.execute(db);
}

/** With pages as above. */
async function createFormerConsumers(db: Kysely<unknown>): Promise<void> {
  await sql`create table former_consumers (
    uuid varchar(36) collate "C" primary key,
    generations bigint not null,
    removed_at timestamptz not null default now())`.execute(db);
  await sql`alter table former_consumers set (vacuum_truncate = off)`.execute(db);
  await sql`insert into former_consumers (uuid, generations) select lpad(n::text, 36, '-'), 0 from generate_series(1, 4000) as n`.execute(
    db,
  );
  await sql`delete from former_consumers`.execute(db);
}

const functions: Readonly<Record<string, string>> = {
  // For the statement that makes consumers. In a function a query sees what was committed before it began, and not only before the
  // statement: the former consumer may have been removed while the statement waited for a lock.
  'former_generations(uuids text[]) returns json': `begin
  return (
    select json_object_agg(made.uuid, coalesce((select generations from former_consumers f where f.uuid = made.uuid), 0))
    from unnest(uuids) as made (uuid)
  );
end`,
  'terms_gone() returns trigger': `begin
  delete from consumer_terms where consumer_id = any(array(select id from old_rows));
  if current_setting('placement.former_consumers', true) is distinct from 'none' then
    insert into former_consumers as f (uuid, generations) select uuid, greatest(generation, 0)::bigint + 1 from old_rows
      on conflict (uuid) do update set generations = f.generations + excluded.generations, removed_at = excluded.removed_at;
  end if;
  return null;
end`,
  'terms_truncated() returns trigger': `begin
  delete from consumer_terms;
  delete from former_consumers;
  return null;
end`,
};

/**
 * One statement removes the terms of all consumers that a statement deletes; for each row it would take five times as long. Replacing a
 * trigger locks the table against writers only; dropping one would lock it against readers as well.
 */
const triggers: readonly string[] = [
  `term_gone after delete on consumers referencing old table as old_rows
    for each statement execute function terms_gone()`,
  'term_truncate after truncate on consumers for each statement execute function terms_truncated()',
];

async function qualifyOurs(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ readonly name: string }>`
    select distinct proname as name from pg_proc
    where pronamespace = quote_ident(current_schema())::regnamespace and proname ~ ${ours}`.execute(db);
  await qualifyNames(
    db,
    rows.map(({ name }) => name),
  );
}

/** The functions that migrations 002 to 008 made. */
const ours =
  '^(etag_.*|log_(allocations|provider_rows|provider_parts)_.*|log_names_changed|log_truncated|terms_.*|former_generations)$';
