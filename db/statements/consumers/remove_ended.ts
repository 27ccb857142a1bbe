import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { isLockRefused } from '../../engine/failures.ts';
import { onlyRow } from '../../engine/only_row.ts';
import { briefWait } from '../../engine/slow_lane.ts';
import { countedReleases, releasesAreAccounted } from '../claims/project_usages.ts';
import { usagesAreReleasedWhole, usagesEndWithTerms } from '../usage_history.ts';

/** A consumer that was removed because its term has expired. */
export type RemovedConsumer = {
  readonly uuid: string;
  /** Null if it had none. */
  readonly name: string | null;
  readonly expired: Date;
  readonly projectId: string | null;
  readonly userId: string | null;
  /** How many allocations it had. */
  readonly allocations: number;
};

/** A position in the list of terms by the times at which they expire. */
export type TermPosition = { readonly expires: string; readonly consumerId: number };

/** What one transaction did. */
type Removal = {
  readonly removed: readonly RemovedConsumer[];
  /** Where the next transaction continues; undefined if no more terms have expired, or another process removes the consumers. */
  readonly next: TermPosition | undefined;
};

/** The position before all terms. */
export const firstPosition: TermPosition = { expires: '-infinity', consumerId: 0 };

/** With this advisory lock only one process at a time removes consumers. The lock ends with the transaction. */
const removalLock = 1_450_000;

/**
 * How many seconds ago the oldest term expired whose consumer still exists, null if there is none, and whether usages are counted. The
 * index has the earliest time. A statement that looks for any expired term instead would read the whole table, since the planner
 * expects to find an expired term soon.
 */
export const haveTermsEnded = ({ kysely }: Pick<Database, 'kysely'>) =>
  onlyRow(
    kysely,
    sql<{ readonly overdueSeconds: number | null; readonly isCounting: boolean }>`
    select case when min(expires_at) <= clock_timestamp()
        then extract(epoch from clock_timestamp() - greatest(min(expires_at), 'epoch'))::double precision end as "overdueSeconds",
      exists (select from usage_counting) as "isCounting" from consumer_terms`,
  );

/**
 * Removes consumers whose terms have expired, with their allocations, in one transaction. If another transaction has
 * locked a consumer or one of its allocations, the consumer is left out, so the removal of other consumers does not
 * wait.
 *
 * Locking the allocations takes a third of the CPU time, so they are locked only if the deletion of one was refused a lock.
 * Otherwise the lock is not needed: a transaction that replaces allocations writes the record of their consumer, too.
 *
 * @param after where to begin: the consumers that were left out come before this position
 * @param limit the largest number of terms in the transaction
 * @param isCounting whether usages are counted
 */
export async function removeEnded(
  database: Pick<Database, 'transaction'>,
  after: TermPosition,
  limit: number,
  isCounting = false,
): Promise<Removal> {
  try {
    return await remove(database, after, limit, everyConsumer, isCounting);
  } catch (error) {
    if (!isLockRefused(error)) throw error;
    return remove(database, after, limit, withFreeAllocations, isCounting);
  }
}

/** Parts of a statement: `free` has the locked consumers that are removed. */
const everyConsumer = sql`free as (select id from locked)`;
const withFreeAllocations = sql`locked_allocation as materialized (
      select id from allocations where consumer_id = any(array(select uuid from locked)) for update skip locked
    ),
    free as (
      select id from locked where uuid not in (
        select consumer_id from allocations
        where consumer_id = any(array(select uuid from locked)) and id not in (select id from locked_allocation)
      )
    )`;

/**
 * A separate statement locks the records, so the next statement sees all earlier writes: it leaves consumers whose term
 * was renewed, or which were rewritten and so have no term. Each write of a term holds the lock of the record. Rows of
 * terms that no longer hold are deleted as well. Terms are looked up one by one, because a plan from a time with few
 * terms would read all of them.
 */
async function remove(
  { transaction }: Pick<Database, 'transaction'>,
  after: TermPosition,
  limit: number,
  free: RawBuilder<unknown>,
  isCounting: boolean,
): Promise<Removal> {
  const lock = sql<{ readonly count: number; readonly expires: string | null; readonly consumerId: number | null }>`
    with ended as materialized (
      select consumer_id, expires_at from consumer_terms
      where (select pg_try_advisory_xact_lock(${sql.lit(removalLock)})) and expires_at <= (select clock_timestamp())
        and (expires_at, consumer_id + 0) > (${after.expires}::timestamptz, ${after.consumerId}::integer)
      order by expires_at, consumer_id + 0 limit ${sql.lit(limit)}
    ),
    locked as materialized (
      select id, uuid from consumers where id = any(array(select consumer_id from ended)) for update skip locked
    ),
    ${free},
    noted as materialized (
      select set_config('placement.locked_consumers', array(select id from free)::text, true), ${usagesEndWithTerms}, ${usagesAreReleasedWhole},
        set_config('placement.other_terms', array(select consumer_id from ended where consumer_id not in (select id from locked))::text, true)
    )
    select (select count(*) from ended)::integer as count, last.expires_at::text as expires, last.consumer_id as "consumerId"
    from noted left join (select * from ended order by expires_at desc, consumer_id desc limit 1) as last on true`;
  const removal = sql<RemovedConsumer>`
    with present as materialized (
      select c.id, c.uuid, c.project_id, c.user_id, t.expires_at, t.generation = c.generation as holds,
        (select name from consumer_names where consumer_id = c.id) as name
      from unnest(current_setting('placement.locked_consumers')::integer[]) as l (id) join consumers c on c.id = l.id
      cross join lateral (select expires_at, generation from consumer_terms where consumer_id = l.id offset 0) as t
      where t.expires_at <= clock_timestamp()
    ),
    gone as (
      delete from consumers where id = any(array(select id from present where holds))
    ),
    released as (
      delete from allocations where consumer_id = any(array(select uuid from present where holds))
        and (${releasesAreAccounted(isCounting)}) is not null
      returning consumer_id, resource_class_id, used
    ),
    ${isCounting ? sql`${countedReleases()},` : sql``}
    sizes as (select consumer_id, count(*)::integer as count from released group by 1),
    left_behind as (
      delete from consumer_terms where consumer_id = any(array(
        select id from present where not holds
        union all
        select id from unnest(current_setting('placement.other_terms')::integer[]) as e (id)
        where not exists (select from consumers c where c.id = e.id offset 0)
      ))
    )
    select p.uuid, p.name, p.expires_at as expired, (select external_id from projects where id = p.project_id) as "projectId",
      (select external_id from users where id = p.user_id) as "userId", coalesce(sizes.count, 0) as allocations
    from present p left join sizes on sizes.consumer_id = p.uuid where p.holds`;
  const [[last], removed] = await transaction([lock, removal], briefWait);
  const isMore = last !== undefined && last.count === limit && last.expires !== null && last.consumerId !== null;
  return {
    removed,
    next: isMore ? { expires: last.expires ?? '', consumerId: last.consumerId ?? 0 } : undefined,
  };
}

/** How many former consumers one statement checks, in some 5 ms. */
export const pageSize = 1000;

/**
 * Deletes the records of former consumers that were removed long ago, one page of the table at a time. The record stays if its
 * UUID has a consumer now, because the generation that clients know is counted from the record. If a consumer is made while
 * the record of its former consumer is deleted, the generation goes back: then a client that has read it gets a conflict, and
 * reads it again.
 *
 * @param after the UUID after which the page begins
 * @returns the last UUID of the page; undefined if it was the last page
 */
export async function forgetFormerConsumers(
  { kysely }: Pick<Database, 'kysely'>,
  after: string,
  keepSeconds: number,
): Promise<string | undefined> {
  // Rows are locked without waiting. One that was written meanwhile is looked at again: the consumer was removed again.
  const { last, count } = await onlyRow(
    kysely,
    sql<{ readonly last: string | null; readonly count: number }>`
    with page as materialized (
      select uuid, removed_at from former_consumers where uuid > ${after}::text order by uuid limit ${sql.lit(pageSize)}
    ),
    old as materialized (
      select uuid from former_consumers f
      where uuid = any(array(select uuid from page where removed_at < now() - make_interval(secs => ${keepSeconds})))
        and removed_at < now() - make_interval(secs => ${keepSeconds})
        and not exists (select from consumers c where c.uuid = f.uuid offset 0)
      for update skip locked
    ),
    forgotten as (delete from former_consumers where uuid = any(array(select uuid from old)))
    select max(uuid) as last, count(*)::integer as count from page`,
  );
  return last !== null && count === pageSize ? last : undefined;
}
