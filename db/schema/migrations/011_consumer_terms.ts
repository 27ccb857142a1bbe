import { type Kysely, type QueryExecutorProvider, sql } from 'kysely';

/**
 * The terms of consumers: a consumer with a row here, at the generation that it has, is removed at `expires_at`. The table is of
 * this service alone. Other programs and older releases raise the generation when they rewrite a consumer, and so make it lasting
 * without knowing it; and when they delete it, a trigger removes its term.
 *
 * As for the change log (migration 006), the table gets some twenty pages that are never given back: for a table of one page the
 * server would plan to read all of it, and a connection keeps that plan while thousands of terms come.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await addTermsAhead(db);
  await sql`insert into consumer_terms select -n, 0, 'infinity' from generate_series(1, 4000) as n`.execute(db);
  await sql`delete from consumer_terms where consumer_id < 0`.execute(db);
}

/**
 * Creates the table and the triggers, unless they are there. On PostgreSQL this is done before the migrations begin (see
 * brief_locks.ts), because the triggers need a lock on the consumers that writers have to wait for. Where there are no consumers yet,
 * nothing is done.
 */
export async function addTermsAhead(db: QueryExecutorProvider): Promise<void> {
  const { rows } =
    await sql`select where to_regclass('consumers') is not null and to_regclass('consumer_terms') is null`.execute(db);
  if (rows.length === 0) return;
  await sql`create table consumer_terms (
    consumer_id integer primary key,
    generation integer not null,
    expires_at timestamptz(3) not null)`.execute(db);
  await sql`alter table consumer_terms set (vacuum_truncate = off)`.execute(db);
  // The sum keeps the server from looking up single consumers by this index, which means to read all of it: where it
  // takes the table for empty, that seems as cheap as the primary key.
  await sql`create index consumer_terms_expires_at_idx on consumer_terms (expires_at, (consumer_id + 0))`.execute(db);
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\n  return null;\nend`;
    await sql`create or replace function ${sql.raw(name)} returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
  for (const trigger of triggers) await sql.raw(`create trigger ${trigger}`).execute(db);
}

const functions: Readonly<Record<string, string>> = {
  'term_gone()': 'delete from consumer_terms where consumer_id = old.id',
  'terms_truncated()': 'delete from consumer_terms',
};

/** For each row, so that claims, which mostly remove no consumer, do not run it. */
const triggers: readonly string[] = [
  'term_gone after delete on consumers for each row execute function term_gone()',
  'term_truncate after truncate on consumers for each statement execute function terms_truncated()',
];
