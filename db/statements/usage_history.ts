import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { lockTogether, repeatUntilLocked, waitBriefly } from '../schema/brief_locks.ts';

/*
 * The history of usages (migration 013): its switch, and what is done beside the triggers that write it.
 */

/**
 * Switches the history of usages on, if it is off. From then on all writes are recorded. What is held already is recorded by `takeInHeld`.
 *
 * It waits until the transactions have ended that are writing allocations or consumers, since their triggers found the history off.
 *
 * @param signal ends the wait for the locks, which has no limit of its own
 * @returns whether it was off
 */
export function switchHistoryOn({ patient }: Pick<Database, 'patient'>, signal?: AbortSignal): Promise<boolean> {
  return repeatUntilLocked(() =>
    patient.transaction().execute(async (trx) => {
      signal?.throwIfAborted();
      await waitBriefly(trx);
      await lockTogether(trx, ['allocations', 'consumers'], 'share row exclusive');
      const { rows } = await sql`insert into usage_history (since, is_complete) select clock_timestamp(), false
        where not exists (select from usage_history) returning since`.execute(trx);
      return rows.length > 0;
    }),
  );
}

/**
 * Switches the history of usages off, if it is on. All open records end, without a reason.
 *
 * The row of the switch is locked before the tables. So `takeInHeld`, which locks it first as well, waits before it has locked a consumer.
 *
 * @param signal ends the wait for the locks, which has no limit of its own
 * @returns whether it was on
 */
export function switchHistoryOff({ patient }: Pick<Database, 'patient'>, signal?: AbortSignal): Promise<boolean> {
  return repeatUntilLocked(() =>
    patient.transaction().execute(async (trx) => {
      signal?.throwIfAborted();
      await waitBriefly(trx);
      await sql`select from usage_history for update`.execute(trx);
      await lockTogether(trx, ['allocations', 'consumers'], 'share row exclusive');
      const { rows } = await sql`
        with gone as (delete from open_usage_records returning *),
        ended as (
          insert into usage_records (id, consumer_id, name, project_id, user_id, consumer_type_id, provider_uuid, provider_name, class_name,
            amount, began_at, ended_at)
          select g.id, g.consumer_id, g.name, g.project_id, g.user_id, g.consumer_type_id, g.provider_uuid, coalesce(p.name, g.provider_name),
            coalesce(r.name, g.class_name), g.amount, g.began_at, now.at
          from gone g cross join (select clock_timestamp() as at) as now
          left join resource_providers p on p.id = g.resource_provider_id left join resource_classes r on r.id = g.resource_class_id
          where g.began_at < now.at
        )
        delete from usage_history returning since`.execute(trx);
      return rows.length > 0;
    }),
  );
}

/** How far the history has taken in what was held when it was switched on. */
export type HeldPosition = {
  /** When it was switched on. Where it was switched off and on again meanwhile, it is begun anew. */
  readonly since: string;
  /** The consumer after which to go on. */
  readonly after: string;
};

/**
 * Takes in what some consumers hold since before the history was switched on. The consumers are locked, and then their allocations, as by
 * other writes. What is recorded already stays as it is, so several processes may do it at once, and one may begin anew after another was
 * killed.
 *
 * @param position what the last call returned; undefined to begin
 * @param limit how many allocations to look at
 * @returns where to go on; undefined if all is taken in, or the history is off
 */
export async function takeInHeld(
  { kysely, write }: Pick<Database, 'kysely' | 'write'>,
  position: HeldPosition | undefined,
  limit: number,
): Promise<HeldPosition | undefined> {
  const { since, uuids } = await onlyRow(
    kysely,
    sql<{ readonly since: string | null; readonly uuids: readonly string[] }>`
    with switched as materialized (select since::text as since from usage_history where not is_complete),
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
  await write([
    sql`select from usage_history for share`,
    sql`select id from consumers where uuid = any(${uuids}::text[]) order by uuid for update`,
    sql`select id from allocations where consumer_id = any(${uuids}::text[]) order by id for update`,
    sql`select settle_usage_records(${uuids}::text[]) where exists (select from usage_history)`,
  ]);
  return { since, after: last };
}

/**
 * Deletes records that ended long ago, some at a time. No write waits for it, since none changes what another transaction has recorded.
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
