import { type RawBuilder, sql } from 'kysely';
import type { LockWait } from '../engine/slow_lane.ts';
import { andLimitLockWait, limitLockWait } from './lock_timeout.ts';

/**
 * Locks providers, in the order in which all writes lock them.
 *
 * @param wait how long to wait for each lock. Without it, the time limit of a statement applies.
 */
export const lockProviders = (ids: readonly number[], wait?: LockWait): RawBuilder<unknown> => sql`
  select id from resource_providers
  where id = any(${ids}::integer[]) ${andLimitLockWait(wait)}
  order by id for no key update`;

/**
 * Statements to run ahead of those that lock the same providers, if `wait` has a longer limit for these locks. The
 * other locks of the transaction get the shorter limit.
 */
export const lockProvidersFirst = (
  ids: readonly number[],
  wait: LockWait | undefined,
): readonly RawBuilder<unknown>[] =>
  wait?.firstLockTimeoutMs === undefined
    ? []
    : [lockProviders(ids, { lockTimeoutMs: wait.firstLockTimeoutMs }), limitLockWait(wait)];
