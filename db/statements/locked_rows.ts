import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { isLockRefused } from '../engine/failures.ts';
import { briefWait, type LockWait } from '../engine/slow_lane.ts';
import { leavesNoFormer } from './consumers/consumer_row.ts';

/** Rows that writes lock. */
export type LockedRows = {
  /** UUIDs of providers. */
  readonly providers: readonly string[];
  /** UUIDs of consumers whose record or an allocation is locked. */
  readonly consumers: readonly string[];
};

type LockedRow = { readonly is_provider: boolean; readonly uuid: string };

/**
 * Finds which of these rows other transactions have locked now: its transaction locks the rows that are free,
 * and returns the other rows.
 *
 * @param tables `tablesOfClaims` or `tablesOfDeletions`
 * @returns the locked rows; `tables` if one of the tables is locked as a whole, so that nothing is known of its rows
 */
export async function findLockedRows(
  { transaction }: Pick<Database, 'transaction'>,
  { providers, consumers }: LockedRows,
  tables: readonly RawBuilder<unknown>[],
): Promise<LockedRows | 'tables'> {
  const statement = sql<LockedRow>`
    with wanted_provider as (select unnest(${providers}::text[]) as uuid),
    wanted_consumer as (select unnest(${consumers}::text[]) as uuid),
    free_provider as materialized (
      select uuid from resource_providers where uuid in (select uuid from wanted_provider) for no key update skip locked
    ),
    free_consumer as materialized (
      select uuid from consumers where uuid in (select uuid from wanted_consumer) for update skip locked
    ),
    free_allocation as materialized (
      select id from allocations where consumer_id in (select uuid from wanted_consumer) for update skip locked
    )
    select true as is_provider, uuid from resource_providers
    where uuid in (select uuid from wanted_provider) and uuid not in (select uuid from free_provider)
    union all
    select false, uuid from consumers
    where uuid in (select uuid from wanted_consumer) and uuid not in (select uuid from free_consumer)
    union all
    select distinct false, consumer_id from allocations
    where consumer_id in (select uuid from wanted_consumer) and id not in (select id from free_allocation)`;
  try {
    const results = await transaction([...tables, statement], briefWait);
    const rows = results[tables.length] as readonly LockedRow[]; // the rows of `statement`
    const uuidsOf = (isProvider: boolean) =>
      rows.filter((row) => row.is_provider === isProvider).map(({ uuid }) => uuid);
    return { providers: uuidsOf(true), consumers: uuidsOf(false) };
  } catch (error) {
    if (isLockRefused(error)) return 'tables';
    throw error;
  }
}

/** As `findLockedRows`, for providers by their ids. */
export async function findLockedProviders(
  { transaction }: Pick<Database, 'transaction'>,
  ids: readonly number[],
): Promise<readonly number[]> {
  const [rows] = await transaction([
    sql<{ readonly id: number }>`
      with free as materialized (
        select id from resource_providers where id = any(${ids}::integer[]) for no key update skip locked
      )
      select id from resource_providers where id = any(${ids}::integer[]) and id not in (select id from free)`,
  ]);
  return rows.map(({ id }) => id);
}

/**
 * Locks the tables that deletions of allocations write, in the mode of deletions. It has to wait while an index is built
 * or VACUUM FULL runs.
 */
export const tablesOfDeletions: readonly RawBuilder<unknown>[] = [
  sql`lock table allocations, consumers, resource_providers, provider_changes in row exclusive mode`,
];

/** As `tablesOfDeletions`, for claims: these also read the owners and types of consumers. */
export const tablesOfClaims: readonly RawBuilder<unknown>[] = [
  ...tablesOfDeletions,
  sql`lock table projects, users, consumer_types in access share mode`,
];

type Waits = (database: Pick<Database, 'transaction'>, wait: LockWait) => Promise<unknown>;

const awaiting =
  (...statements: readonly RawBuilder<unknown>[]): Waits =>
  ({ transaction }, wait) =>
    transaction(statements, wait);

/** Waits until no other transaction locks the row of a provider. @throws `lockNotAvailable` after too long a wait */
export const awaitProvider = (uuid: string): Waits =>
  awaiting(sql`select from resource_providers where uuid = ${uuid} for no key update`);

/** As `awaitProvider`, by the id of the provider. */
export const awaitProviderId = (id: number): Waits =>
  awaiting(sql`select from resource_providers where id = ${id} for no key update`);

/**
 * Waits until no other transaction locks the record of a consumer or its allocations, or has inserted the record
 * without a commit.
 */
export const awaitConsumer = (uuid: string): Waits =>
  awaiting(
    // If there is no record, this inserts and deletes one. The insert waits for a transaction that has inserted the
    // same uncommitted.
    sql`insert into consumers (uuid, project_id, user_id, generation) values (${uuid}, 0, 0, -1)
      on conflict (uuid) do nothing`,
    sql`delete from consumers where uuid = ${uuid} and generation = -1 and ${leavesNoFormer}`,
    sql`select from consumers where uuid = ${uuid} for update`,
    sql`select from allocations where consumer_id = ${uuid} for update`,
  );

/** Waits until none of the tables is locked as a whole. @param tables `tablesOfClaims` or `tablesOfDeletions` */
export const awaitTables = (tables: readonly RawBuilder<unknown>[]): Waits => awaiting(...tables);

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

/**
 * Limits how long a single statement waits for the lock of each row. It must be evaluated before the statement requests
 * such a lock. A statement that waits longer fails with `lockNotAvailable`, and nothing was done.
 *
 * The wait for a table that is locked as a whole is not limited in this statement, only in later ones of the same
 * transaction: a statement locks its tables before anything of it is evaluated.
 */
export const limitLockWait = ({ lockTimeoutMs }: LockWait): RawBuilder<unknown> =>
  sql`select set_config('lock_timeout', ${`${lockTimeoutMs}ms`}, true)`;

/** Sets the limit in a condition for the rows to lock, which saves a statement. Empty without a wait. */
export const andLimitLockWait = (wait: LockWait | undefined): RawBuilder<unknown> =>
  wait === undefined ? sql`` : sql`and (${limitLockWait(wait)}) is not null`;
