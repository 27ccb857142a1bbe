import { sql } from 'kysely';

/**
 * How long a transaction that many share waits for a lock, in milliseconds. Then it fails, and each of them goes by itself, so that
 * only those wait that need what somebody else holds.
 */
export const briefWaitMs = 500;

/**
 * Limits the wait for each lock of a single statement to that, where it is evaluated before them. It fails with
 * `lockNotAvailable`, and nothing was done.
 */
export const waitBriefly = sql`select set_config('lock_timeout', ${sql.lit(`${briefWaitMs}ms`)}, true)`;
