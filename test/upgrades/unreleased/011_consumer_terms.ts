import { type Kysely, sql } from 'kysely';

/**
 * The terms of consumers. A row holds for one generation of the consumer: a consumer that still has it is removed at
 * `expires_at`. Only this service knows the table. When another program or an older release rewrites a consumer, it
 * raises the generation, and so the consumer is lasting. When it deletes the consumer, a trigger removes the term.
 *
 * As in the change log (migration 006), the table gets some twenty pages that are never given back. For a table of one
 * page the server would plan to read the whole table, and a connection would keep this plan while thousands of terms
 * are added.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql`select where to_regclass('consumer_terms') is not null`.execute(db);
  const isMade = rows.length > 0; // with its triggers, by an earlier version that made them before the migration
  if (!isMade) await createTable(db);
  await sql`insert into consumer_terms select -n, 0, 'infinity' from generate_series(1, 4000) as n`.execute(db);
  await sql`delete from consumer_terms where consumer_id < 0`.execute(db);
  if (isMade) return;
  // In the end, since creating a trigger locks the table of consumers.
  for (const trigger of triggers) await sql.raw(`create trigger ${trigger}`).execute(db);
}

async function createTable(db: Kysely<unknown>): Promise<void> {
  await sql`create table consumer_terms (
    consumer_id integer primary key,
    generation integer not null,
    expires_at timestamptz(3) not null)`.execute(db);
  await sql`alter table consumer_terms set (vacuum_truncate = off)`.execute(db);
  // Because of the sum the server cannot look up a single consumer by this index, which would read the whole index. With
  // statistics of an empty table that would seem as cheap as the primary key.
  await sql`create index consumer_terms_expires_at_idx on consumer_terms (expires_at, (consumer_id + 0))`.execute(db);
  for (const [name, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\n  return null;\nend`;
    await sql`create or replace function ${sql.raw(name)} returns trigger language plpgsql as ${sql.lit(text)}`.execute(
      db,
    );
  }
}

const functions: Readonly<Record<string, string>> = {
  'term_gone()': 'delete from consumer_terms where consumer_id = old.id',
  'terms_truncated()': 'delete from consumer_terms',
};

/** For each row: most claims remove no consumer, and then a trigger for each row does not run. */
const triggers: readonly string[] = [
  'term_gone after delete on consumers for each row execute function term_gone()',
  'term_truncate after truncate on consumers for each statement execute function terms_truncated()',
];
