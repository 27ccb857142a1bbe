import { type RawBuilder, sql } from 'kysely';

/**
 * Whether the server tells by `pg_stat_get_bgwriter_stat_reset_time()` when it last recovered from a crash: it forgets its statistics
 * then. PostgreSQL 14 would read a file for it.
 */
export const tellsCrashes = `current_setting('server_version_num')::integer >= 150000`;

/**
 * Identifies one run of a server, as text: the times at which the server started, and at which it last recovered from the crash of one
 * of its processes, in seconds since 1970. Another server that takes over has another value, and so has the same server after a restart
 * or a crash. PostgreSQL 14 tells nothing of a crash.
 */
export const serverRun = sql`concat_ws(' ', extract(epoch from pg_postmaster_start_time()), case when ${sql.raw(tellsCrashes)}
  then extract(epoch from pg_stat_get_bgwriter_stat_reset_time()) end)`;

/**
 * Whether the statement runs on this run of the server; true if none is given. On another run the same ids and
 * generations may belong to other rows.
 */
export const isOnRun = (run: string | RawBuilder<unknown> | undefined): RawBuilder<boolean> =>
  sql`coalesce(${serverRun} = ${run ?? null}::text, true)`;
