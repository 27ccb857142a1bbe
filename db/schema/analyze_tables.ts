import { type Kysely, sql } from 'kysely';
import type { Tables } from './tables.ts';

/**
 * Updates the statistics of all tables of the schema. Without them PostgreSQL would plan the first queries for empty tables, or a new
 * column as if all of its values were null. It waits for no lock: a table that is locked against it is being analyzed already, or vacuumed.
 */
export async function analyzeTables(kysely: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select tablename as name from pg_tables where schemaname = current_schema()`.execute(kysely);
  await sql`analyze (skip_locked) ${sql.join(rows.map(({ name }) => sql.table(name)))}`.execute(kysely);
}
