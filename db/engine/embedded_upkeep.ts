import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';
import { inBackground } from './background.ts';

/** How often the tables and the log are looked at, in milliseconds. */
const everyMs = 15_000;

/**
 * How long the write-ahead log may get before a checkpoint. A start after a `kill -9` or a power failure reads it again.
 */
const longestLogBytes = 256 * 2 ** 20;

/**
 * Replaces autovacuum and the checkpointer, which the embedded PostgreSQL lacks. A vacuum, or a checkpoint, uses the one
 * connection like any statement: 25 ms for a table of 1,000 live and 27,000 dead rows.
 *
 * @param failed called with an error; the next round tries again.
 * @returns a function that stops this, and resolves when nothing of it is under way.
 */
export const keepUp = (kysely: Kysely<Tables>, failed: (error: unknown) => void): (() => Promise<void>) =>
  inBackground({
    everyMs,
    failed,
    round: async () => {
      await vacuumTables(kysely);
      await shortenLog(kysely, longestLogBytes);
    },
  });

/**
 * Vacuums and analyzes the tables that need it, one after the other, by the rule of autovacuum: when a table has more dead
 * rows than 50 plus a fifth of its live rows, or when more than 50 plus a tenth changed since its statistics were made.
 */
export async function vacuumTables(kysely: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
    where n_dead_tup > 50 + n_live_tup / 5 or n_mod_since_analyze > 50 + n_live_tup / 10
    order by relname`.execute(kysely);
  for (const { name } of rows) await sql`vacuum (analyze) ${sql.table(name)}`.execute(kysely);
}

/** Makes a checkpoint if the write-ahead log since the last one is longer. What is before it is removed, or used again. */
export async function shortenLog(kysely: Kysely<Tables>, longestBytes: number): Promise<void> {
  const { rows } = await sql<{ isLonger: boolean }>`
    select pg_current_wal_insert_lsn() - redo_lsn > ${longestBytes} as "isLonger"
    from pg_control_checkpoint()`.execute(kysely);
  if (rows[0]?.isLonger) await sql`checkpoint`.execute(kysely);
}
