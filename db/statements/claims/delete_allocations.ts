import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { consumerTagsAreWritten } from '../written_tags.ts';
import { hasSeen, type NamedAllocation } from './seen_allocations.ts';

/**
 * Deletes all allocations of some consumers, and those consumers that had some, whatever their generations are, in one
 * transaction. A record without allocations, which OpenStack Placement may leave behind, stays.
 *
 * A separate statement locks the consumers, so that the next one has a newer snapshot and sees everything that earlier
 * transactions wrote. Later claims find no consumer, so their guard fails. For old allocations without a consumer record,
 * the allocations are locked, before the consumers. The online data migration or a claim may create the record: it has
 * either committed before the consumers are locked, or finds the allocations deleted.
 *
 * @param wait how long to wait for each lock. Without it, the time limit of a statement applies.
 * @returns how many allocations each consumer had; consumers without allocations are missing.
 * @throws `lockNotAvailable` if another transaction holds one of the consumers for too long; then nothing was deleted.
 */
export async function deleteAllocations(
  { transaction }: Pick<Database, 'transaction'>,
  consumerUuids: readonly string[],
  wait?: LockWait,
): Promise<ReadonlyMap<string, number>> {
  const uuids = sql`any(${consumerUuids}::text[])`;
  // The offset makes the server look up each consumer separately: a plan from a time with few consumers read all, ten
  // times as slow.
  const isOld = sql`not exists (select from consumers c where c.uuid = a.consumer_id offset 0)`;
  // Most consumers have a record: then no allocation is looked at.
  const lockOld = sql`select id from allocations where consumer_id = any(array(
      select uuid from unnest(${consumerUuids}::text[]) as u (uuid) where not exists (select from consumers c where c.uuid = u.uuid offset 0)
    )) order by id for update`;
  const lock = sql`
    with locked as (select uuid from consumers where uuid = ${uuids} order by uuid for update)
    select set_config('placement.locked_consumers', coalesce(array_agg(uuid), '{}')::text, true) from locked`;
  // A consumer that was created after the lock is not deleted: the statement might not see its newest allocations, and
  // would leave them without a consumer.
  const remove = sql<{ readonly uuid: string }>`
    with released as (
      delete from allocations a where consumer_id = ${uuids} and (${consumerTagsAreWritten}) is not null
        and (consumer_id in (select unnest(current_setting('placement.locked_consumers')::text[])) or ${isOld})
      returning consumer_id
    ),
    gone as (delete from consumers where uuid = any(array(select consumer_id from released)))
    select consumer_id as uuid from released`;
  const [, , removed] = await transaction([lockOld, lock, remove], wait);
  const counts = new Map<string, number>();
  for (const { uuid } of removed) counts.set(uuid, (counts.get(uuid) ?? 0) + 1);
  return counts;
}

/**
 * Deletes a consumer and all its allocations, if these are the ones that the caller has seen, and the consumer still
 * has the same generation. It locks the consumer as above. It also locks the allocations, since some writes do not
 * raise the consumer's generation. Allocations of deleted providers or classes are not compared, and are deleted with
 * the others.
 *
 * @returns how many allocations were deleted; 0 if they are not those that were seen.
 */
export async function deleteSeenAllocations(
  { write }: Pick<Database, 'write'>,
  consumerUuid: string,
  seen: { readonly generation: number | null; readonly allocations: readonly NamedAllocation[] },
): Promise<number> {
  const lock = sql`select id from consumers where uuid = ${consumerUuid} for update`;
  const lockAllocations = sql`select id from allocations where consumer_id = ${consumerUuid} order by id for update`;
  const remove = sql`
    with same as materialized (
      select where ${hasSeen(consumerUuid, seen.allocations)}
        and (select generation from consumers where uuid = ${consumerUuid}) is not distinct from ${seen.generation}::integer
    ), gone as (
      delete from consumers where uuid = ${consumerUuid} and exists (select from same)
    )
    delete from allocations where consumer_id = ${consumerUuid} and exists (select from same)
      and (${consumerTagsAreWritten}) is not null returning id`;
  const [, , removed] = await write([lock, lockAllocations, remove]);
  return removed.length;
}
