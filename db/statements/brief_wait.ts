import { sql } from 'kysely';

/**
 * Has the locks of this transaction waited for half a second each at most, where it is evaluated before them: for what many
 * share, who are each to go by themselves then, so that only those wait who need what somebody else holds. It fails with
 * `lockNotAvailable`, and nothing was done.
 */
export const waitBriefly = sql`select set_config('lock_timeout', '500ms', true)`;
