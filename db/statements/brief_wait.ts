import { sql } from 'kysely';

/**
 * How long what many share waits for a lock, in milliseconds: then each of them goes by itself, so that only those wait who need
 * what somebody else holds.
 */
export const briefWaitMs = 500;

/**
 * Has the locks of a single statement waited for no longer, where it is evaluated before them. It fails with `lockNotAvailable`,
 * and nothing was done.
 */
export const waitBriefly = sql`select set_config('lock_timeout', ${sql.lit(`${briefWaitMs}ms`)}, true)`;
