import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { briefWaitMs } from './brief_wait.ts';
import { type SeenAllocation, seenRows } from './seen_allocations.ts';
import { consumerTagsAreWritten } from './written_tags.ts';

/**
 * Deletes all allocations of some consumers, and the consumers, whatever their generations are, in one transaction.
 *
 * The consumers are locked by a statement of its own, so that the next one, with a newer snapshot, sees all that writers before
 * us wrote; writers after us find no consumer and lose their guard. Old allocations without a consumer are locked instead,
 * and first: whoever gives them one, the online data migration or a claim, has done so when the consumer is locked, or
 * finds them gone.
 *
 * @returns how many allocations each consumer had; those that had none are missing.
 * @throws `lockNotAvailable` where somebody holds one of several consumers; nothing was deleted then.
 */
export async function deleteAllocations(
  { transaction }: Pick<Database, 'transaction'>,
  consumerUuids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const uuids = sql`any(${consumerUuids}::text[])`;
  // With an offset each is looked up by itself: a plan of a time with few consumers read all of them, ten times as long.
  const isOld = sql`not exists (select from consumers c where c.uuid = a.consumer_id offset 0)`;
  const lockOld = sql`select id from allocations a where consumer_id = ${uuids} and ${isOld} order by id for update`;
  const lock = sql`
    with locked as (select id from consumers where uuid = ${uuids} order by uuid for update)
    select set_config('placement.locked_consumers', coalesce(array_agg(id), '{}')::text, true) from locked`;
  // A consumer that came after the lock stays: its newest allocations might be unseen, and would be left without it.
  const remove = sql<{ readonly uuid: string }>`
    with gone as (
      delete from consumers where id = any(current_setting('placement.locked_consumers')::integer[]) returning uuid
    )
    delete from allocations a where consumer_id = ${uuids} and (${consumerTagsAreWritten}) is not null
      and (consumer_id in (select uuid from gone) or ${isOld})
    returning consumer_id as uuid`;
  const [, , removed] = await transaction(
    [lockOld, lock, remove],
    consumerUuids.length > 1 ? { lockTimeoutMs: briefWaitMs } : {},
  );
  const counts = new Map<string, number>();
  for (const { uuid } of removed) counts.set(uuid, (counts.get(uuid) ?? 0) + 1);
  return counts;
}

/**
 * Deletes all allocations of a consumer, and the consumer, where they are those that the caller has seen, and the consumer has
 * the generation that it had then: the locks as above, and on the allocations, for those who write without a consumer's generation.
 * Allocations of providers or classes that are no more are not seen, and go with the others.
 *
 * @returns how many allocations there were; 0 where they are other ones.
 */
export async function deleteSeenAllocations(
  { transaction }: Pick<Database, 'transaction'>,
  consumerUuid: string,
  seen: { readonly generation: number | null; readonly allocations: readonly SeenAllocation[] },
): Promise<number> {
  const lock = sql`select id from consumers where uuid = ${consumerUuid} for update`;
  const lockAllocations = sql`select id from allocations where consumer_id = ${consumerUuid} order by id for update`;
  const remove = sql`
    with present as (
      select a.id, a.resource_provider_id as provider_id, a.resource_class_id as class_id, a.used from allocations a
      join resource_providers p on p.id = a.resource_provider_id join resource_classes c on c.id = a.resource_class_id
      where a.consumer_id = ${consumerUuid}
    ), seen (id, provider_id, class_id, used) as (
      select * from ${seenRows(seen.allocations)}
    ), same as materialized (
      select where not exists (
        (table present except all table seen) union all (table seen except all table present)
      ) and (select generation from consumers where uuid = ${consumerUuid}) is not distinct from ${seen.generation}::integer
    ), gone as (
      delete from consumers where uuid = ${consumerUuid} and exists (select from same)
    )
    delete from allocations where consumer_id = ${consumerUuid} and exists (select from same)
      and (${consumerTagsAreWritten}) is not null returning id`;
  const [, , removed] = await transaction([lock, lockAllocations, remove]);
  return removed.length;
}
