import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';
import { onlyRow } from './only_row.ts';

/**
 * Whether the server confirms commits: none in this database has waited for a synchronous standby for longer than this time. A role sees
 * this of its own connections, and those are what matters.
 *
 * @param ms the time in milliseconds
 */
export async function isConfirming(kysely: Kysely<Tables>, ms: number): Promise<boolean> {
  const { waits } = await onlyRow(
    kysely,
    sql<{ readonly waits: boolean }>`select exists (select from pg_stat_activity where datname = current_database()
      and wait_event = 'SyncRep' and query_start < clock_timestamp() - ${ms}::integer * interval '1 ms') as waits`,
  );
  return !waits;
}
