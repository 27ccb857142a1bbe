import { type Kysely, sql } from 'kysely';
import type { Tables } from '../schema/tables.ts';

/** How often the tables are checked, in milliseconds. */
const everyMs = 15_000;

/**
 * Replaces autovacuum, which the embedded PostgreSQL lacks, by the same rule: a table is vacuumed and analyzed when it
 * has more dead rows than 50 plus a fifth of its live rows, or when more than 50 plus a tenth changed since its
 * statistics were made. A vacuum uses the one connection like any statement: 25 ms for a table of 1,000 live and 27,000
 * dead rows.
 *
 * @param failed called with an error; the next round tries again.
 * @returns a function that stops the vacuuming, and resolves when no vacuum is under way.
 */
export function keepUp(kysely: Kysely<Tables>, failed: (error: unknown) => void): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(() => vacuumTables(kysely)).catch(failed);
  }, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}

/** Vacuums and analyzes the tables that need it, one after the other. */
export async function vacuumTables(kysely: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
    where n_dead_tup > 50 + n_live_tup / 5 or n_mod_since_analyze > 50 + n_live_tup / 10
    order by relname`.execute(kysely);
  for (const { name } of rows) await sql`vacuum (analyze) ${sql.table(name)}`.execute(kysely);
}
