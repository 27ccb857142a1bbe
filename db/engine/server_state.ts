import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import { failureOf, isDatabaseError, isPassing } from './failures.ts';

/**
 * Waits until the database answers.
 *
 * @param retries how many attempts follow the first one; -1 means no limit
 * @param wait called after each failed attempt; the next attempt begins when it resolves
 * @throws the error of the last attempt, and at once an error that a retry cannot mend, such as a wrong password.
 */
export async function reach(
  { kysely }: { readonly kysely: QueryExecutorProvider },
  retries: number,
  wait: (reason: string, attempt: number) => Promise<void>,
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await sql`select 1`.execute(kysely);
      return;
    } catch (error) {
      const hopeless = isDatabaseError(error) && !isPassing(error);
      if (hopeless || attempt === retries) throw error;
      await wait(failureOf(error), attempt + 1);
    }
  }
}

/**
 * Whether the server shows by `pg_stat_get_bgwriter_stat_reset_time()` when it last recovered from a crash: a crash resets the
 * statistics. PostgreSQL 14 would read a file for this time.
 */
export const tellsCrashes = `current_setting('server_version_num')::integer >= 150000`;

/** Identifies the tables: a dump that takes their place, in this database or in another one of its name, makes tables with other ids. */
export const tablesId = sql`'provider_changes'::regclass::oid`;

/**
 * Identifies one run of a server on our tables, as text: the times at which the server started, and at which it last recovered from the crash
 * of one of its processes, in seconds since 1970, and the tables. Another server that takes over has another value, and so has the same
 * server after a restart or a crash, and tables that were restored. PostgreSQL 14 does not show a crash.
 */
export const serverRun = sql`concat_ws(' ', extract(epoch from pg_postmaster_start_time()), case when ${sql.raw(tellsCrashes)}
  then extract(epoch from pg_stat_get_bgwriter_stat_reset_time()) end, ${tablesId})`;

/**
 * Whether the statement runs on this run of the server; true without a run to compare. On another run the same ids and
 * generations may belong to other rows.
 */
export const isOnRun = (run: string | RawBuilder<unknown> | undefined): RawBuilder<boolean> =>
  sql`coalesce(${serverRun} = ${run ?? null}::text, true)`;
