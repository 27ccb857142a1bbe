import { type RawBuilder, sql } from 'kysely';
import type { LockWait } from '../engine/slow_lane.ts';

/**
 * Limits how long a single statement waits for the lock of each row. It must be evaluated before the statement requests
 * such a lock. A statement that waits longer fails with `lockNotAvailable`, and nothing was done.
 *
 * The wait for a table that is locked as a whole is not limited in this statement, only in later ones of the same
 * transaction: a statement locks its tables before anything of it is evaluated.
 */
export const limitLockWait = ({ lockTimeoutMs }: LockWait): RawBuilder<unknown> =>
  sql`select set_config('lock_timeout', ${`${lockTimeoutMs}ms`}, true)`;

/** The same as one more condition for the rows to lock, so that it needs no statement of its own. Empty without a wait. */
export const andLimitLockWait = (wait: LockWait | undefined): RawBuilder<unknown> =>
  wait === undefined ? sql`` : sql`and (${limitLockWait(wait)}) is not null`;
