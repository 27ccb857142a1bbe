import { type RawBuilder, sql } from 'kysely';
import type { LockWait } from '../engine/slow_lane.ts';

/**
 * Limits how long a single statement waits for each lock. It must be evaluated before the statement requests a lock. A
 * statement that waits longer fails with `lockNotAvailable`, and nothing was done.
 */
export const limitLockWait = ({ lockTimeoutMs }: LockWait): RawBuilder<unknown> =>
  sql`select set_config('lock_timeout', ${`${lockTimeoutMs}ms`}, true)`;

/** The same as a further condition of the rows that are locked, so that no statement comes before. Without a wait it is empty. */
export const andLimitLockWait = (wait: LockWait | undefined): RawBuilder<unknown> =>
  wait === undefined ? sql`` : sql`and (${limitLockWait(wait)}) is not null`;
