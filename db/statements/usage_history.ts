import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { noteAllConsumers } from '../fleet/changed_parts.ts';
import { lockTogether, repeatUntilLocked, waitBriefly } from '../schema/brief_locks.ts';

/*
 * The history of usages (migration 014): its switch, and the work in addition to the triggers that write it.
 */

/** Tells the triggers why the usages of this transaction end. */
export const usagesEndWithTerms = sql`set_config('placement.ended', 'term', true)`;

/**
 * Tells the triggers that the next statement is the only write of its transaction, and releases all that consumers hold whose records are
 * locked already.
 */
export const usagesAreReleasedWhole = sql`set_config('placement.released_whole', 'on', true)`;

/**
 * Switches the history of usages on, if it is off. From then on all writes are recorded. Existing allocations are recorded by `takeInHeld`.
 * While records of an earlier history are being closed, nothing is done.
 *
 * It waits until all transactions that write allocations or consumers have ended, since their triggers found the history off.
 *
 * @param signal ends the wait for the locks, which has no limit of its own
 * @returns whether the history was off
 */
export function switchHistoryOn({ unlimited }: Pick<Database, 'unlimited'>, signal?: AbortSignal): Promise<boolean> {
  return repeatUntilLocked(() =>
    unlimited.transaction().execute(async (trx) => {
      signal?.throwIfAborted();
      await waitBriefly(trx);
      await lockTogether(trx, ['allocations', 'consumers'], 'share row exclusive');
      const { rows } = await sql`insert into usage_history (since, is_complete) select clock_timestamp(), false
        where not exists (select from usage_history) returning since`.execute(trx);
      if (rows.length === 0) return false;
      // Of a transaction of another program whose snapshot was older than the former switch.
      await sql`delete from open_usage_records`.execute(trx);
      // Until now it was not logged which consumers changed.
      await noteAllConsumers(trx);
      return true;
    }),
  );
}

/**
 * Switches the history of usages off, if it is on. From then on nothing is recorded; open records are closed by `closeRecords`.
 *
 * The row of the switch is locked before the tables. So `takeInHeld`, which locks it first as well, waits before it has locked a consumer.
 *
 * @param signal ends the wait for the locks, which has no limit of its own
 * @returns whether the history was on
 */
export function switchHistoryOff({ unlimited }: Pick<Database, 'unlimited'>, signal?: AbortSignal): Promise<boolean> {
  return repeatUntilLocked(() =>
    unlimited.transaction().execute(async (trx) => {
      signal?.throwIfAborted();
      await waitBriefly(trx);
      await sql`select from usage_history for update`.execute(trx);
      await lockTogether(trx, ['allocations', 'consumers'], 'share row exclusive');
      const { rows } =
        await sql`update usage_history set until = clock_timestamp() where until is null returning since`.execute(trx);
      // From now on it is not logged which consumers change.
      if (rows.length > 0) await noteAllConsumers(trx);
      return rows.length > 0;
    }),
  );
}

/**
 * Closes some of the open records of a history that was switched off, as of that time and without a reason. The last call removes the
 * switch. Several processes may do it at once.
 *
 * @param limit how many records to close at most
 * @returns whether there may be more; false if it was not switched off
 */
export async function closeRecords({ kysely }: Pick<Database, 'kysely'>, limit: number): Promise<boolean> {
  const { isMore } = await onlyRow(
    kysely,
    sql<{ readonly isMore: boolean }>`
    with switched as materialized (select until from usage_history where until is not null),
    gone as (
      delete from open_usage_records where ctid = any(array(
        select ctid from open_usage_records where exists (select from switched) limit ${sql.lit(limit)} for update skip locked
      )) returning *
    ),
    ended as (
      insert into usage_records (id, consumer_id, name, project_id, user_id, consumer_type_id, provider_uuid, provider_name, class_name,
        amount, began_at, ended_at)
      select g.id, g.consumer_id, g.name, g.project_id, g.user_id, g.consumer_type_id, g.provider_uuid, coalesce(p.name, g.provider_name),
        coalesce(r.name, g.class_name), g.amount, g.began_at, s.until
      from gone g cross join switched s
      left join resource_providers p on p.id = g.resource_provider_id left join resource_classes r on r.id = g.resource_class_id
      where g.began_at < s.until
    )
    select exists (select from switched) and exists (select from gone) as "isMore"`,
  );
  if (isMore) return true;
  const { rows } =
    await sql`delete from usage_history where until is not null and not exists (select from open_usage_records)
    returning since`.execute(kysely);
  if (rows.length > 0) return false;
  // Another process is closing the remaining records.
  const { isClosing } = await onlyRow(
    kysely,
    sql<{
      readonly isClosing: boolean;
    }>`select exists (select from usage_history where until is not null) as "isClosing"`,
  );
  return isClosing;
}

/** How far the history has recorded the allocations that existed when it was switched on. */
export type HeldPosition = {
  /** When it was switched on. After it was switched off and on again meanwhile, the work restarts. */
  readonly since: string;
  /** The consumer after which to continue. */
  readonly after: string;
};

/**
 * Takes in what some consumers hold since before the history was switched on. The consumers are locked, and then their allocations, as by
 * other writes. What is recorded already stays as it is, so several processes may do it at once, and one may begin anew after another was
 * killed.
 *
 * @param position what the last call returned; undefined to begin
 * @param limit how many allocations to look at
 * @returns where to continue; undefined if all allocations are recorded, or the history is off
 */
export async function takeInHeld(
  { kysely, write }: Pick<Database, 'kysely' | 'write'>,
  position: HeldPosition | undefined,
  limit: number,
): Promise<HeldPosition | undefined> {
  const { since, uuids } = await onlyRow(
    kysely,
    sql<{ readonly since: string | null; readonly uuids: readonly string[] }>`
    with switched as materialized (select since::text as since from usage_history where not is_complete and until is null),
    seen as materialized (
      select consumer_id from allocations where consumer_id >
        (select case when since = ${position?.since ?? ''}::text then ${position?.after ?? ''}::text else '' end from switched)
      order by consumer_id limit ${sql.lit(limit)}
    )
    select (select since from switched) as since, array(select distinct consumer_id from seen order by consumer_id) as uuids`,
  );
  if (since === null) return undefined;
  const last = uuids.at(-1);
  if (last === undefined) {
    await write([sql`update usage_history set is_complete = true where since::text = ${since}`]);
    return undefined;
  }
  await write(settled(uuids));
  return { since, after: last };
}

/** Makes the next process that starts record all allocations again, because they were written without the triggers. */
export const heldIsNotTakenIn = sql`update usage_history set is_complete = false where until is null`;

/** Locks consumers and their allocations, and brings their open records up to date with the allocations. */
const settled = (uuids: readonly string[]): readonly RawBuilder<unknown>[] => [
  sql`select from usage_history for share`,
  sql`select id from consumers where uuid = any(${uuids}::text[]) order by uuid for update`,
  sql`select id from allocations where consumer_id = any(${uuids}::text[]) order by id for update`,
  sql`select settle_usage_records(${uuids}::text[]) where exists (select from usage_history where until is null)`,
];

/**
 * Sets the owner of open records without one. A record has no owner where one program inserts allocations of a consumer,
 * another program inserts the consumer, and neither sees what the other has not committed yet.
 *
 * @param limit how many consumers at most
 * @returns how many
 */
export async function assignOwners(
  { kysely, write }: Pick<Database, 'kysely' | 'write'>,
  limit: number,
): Promise<number> {
  const { uuids } = await onlyRow(
    kysely,
    sql<{ readonly uuids: readonly string[] }>`select array(
      select distinct consumer_id from open_usage_records o
      where project_id is null and exists (select from consumers where uuid = o.consumer_id) limit ${sql.lit(limit)}
    ) as uuids`,
  );
  if (uuids.length > 0) await write(settled(uuids.toSorted()));
  return uuids.length;
}

/**
 * Deletes records that were closed long ago, some at a time. No write waits for it, since no write changes what another transaction
 * has recorded.
 *
 * @param limit how many records to delete at most
 * @returns how many were deleted
 */
export async function pruneUsageRecords(
  { kysely }: Pick<Database, 'kysely'>,
  { keepSeconds, limit }: { readonly keepSeconds: number; readonly limit: number },
): Promise<number> {
  const { count } = await onlyRow(
    kysely,
    sql<{ readonly count: number }>`
    with gone as (
      delete from usage_records where ctid = any(array(
        select ctid from usage_records where ended_at < now() - make_interval(secs => ${keepSeconds}) limit ${sql.lit(limit)} for update skip locked
      )) returning 1
    )
    select count(*)::integer as count from gone`,
  );
  return count;
}
