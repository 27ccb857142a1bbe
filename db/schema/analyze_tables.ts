import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';

/** What the planner assumes of a table that was never analyzed: 10 pages. */
const assumedBytes = 10 * 8192;

/**
 * Updates the statistics of the tables of the schema that are larger than the planner assumes of a table without statistics. Statistics of
 * a small or empty table would do harm: while the table grows, triggers would continue with plans that read all of it. No lock is waited
 * for: a table that is locked against ANALYZE is being analyzed already, or vacuumed.
 */
export async function analyzeTables(kysely: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
    where relkind = 'r' and relnamespace = quote_ident(current_schema())::regnamespace
      and pg_relation_size(oid) > ${sql.lit(assumedBytes)}`.execute(kysely);
  if (rows.length === 0) return;
  await sql`analyze (skip_locked) ${sql.join(rows.map(({ name }) => sql.table(name)))}`.execute(kysely);
}
