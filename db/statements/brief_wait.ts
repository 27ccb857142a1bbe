import { sql } from 'kysely';

/**
 * Limits the wait for each lock of this transaction to half a second, where it is evaluated before them. For transactions that
 * many share: where one of them needs what somebody else holds, the transaction fails with `lockNotAvailable`, nothing was done,
 * and each goes by itself, so that only those wait that need the lock.
 */
export const waitBriefly = sql`select set_config('lock_timeout', '500ms', true)`;
