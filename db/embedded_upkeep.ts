import { type Kysely, sql } from 'kysely';
import type { Tables } from './tables.ts';

/** How often tables are looked at, in milliseconds. */
const everyMs = 15_000;

/**
 * The embedded PostgreSQL has no autovacuum. This does its work, by its rule: a table is vacuumed and analyzed when more than
 * 50 rows and a fifth of it are dead, or 50 and a tenth have changed since its statistics were made. It waits for the one
 * connection like any statement: 25 ms for a table of 1,000 rows and 27,000 dead ones.
 *
 * @param failed is told of an error; the next round tries again.
 * @returns a function that stops it, and resolves when nothing of it is under way.
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
