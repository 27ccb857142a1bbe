import { sql } from 'kysely';

/**
 * Tells one run of a server from others, as text: another server that takes over has another, and so has the same one after a
 * restart. It is when the server started, in seconds since 1970.
 */
export const serverRun = sql`extract(epoch from pg_postmaster_start_time())::text`;
