import { type RawBuilder, sql } from 'kysely';

/**
 * Identifies one run of a server, as text: the time at which the server started, in seconds since 1970. Another server
 * that takes over has another value, and so has the same server after a restart.
 */
export const serverRun = sql`extract(epoch from pg_postmaster_start_time())::text`;

/**
 * Whether the statement runs on this run of the server; true if none is given. On another run the same ids and
 * generations may belong to other rows.
 */
export const isOnRun = (run: string | RawBuilder<unknown> | undefined): RawBuilder<boolean> =>
  sql`coalesce(${serverRun} = ${run ?? null}::text, true)`;
