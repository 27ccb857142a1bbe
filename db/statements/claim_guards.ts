import { type RawBuilder, sql } from 'kysely';
import { type ClaimWrite, customClasses, inventoriesToRemove, newInventories } from './claim_write.ts';
import { seenRows } from './seen_allocations.ts';

/*
 * Guards that few claims have, as parts of the statement that writes them: what they lock, and who lost them (the parts of the
 * table `lost`).
 */

/** The records of consumers that are to have the generation that was seen. */
export const lockedConsumers = sql`
    locked_consumer as materialized (
      select id, uuid, generation from consumers where uuid in (select uuid from consumer where generation is not null)
        and (select count(*) from locked_provider) is not null -- after the providers
      order by uuid for update
    ),`;

/** Consumers that have another generation, or record, by now. */
export const lostGenerations = sql`
      union all
      select c.claim, 'consumer' from consumer c left join locked_consumer l on l.uuid = c.uuid
      where c.generation is not null and (l.generation is distinct from c.generation or l.id <> c.record_id)`;

/** Consumers to be emptied that should have old allocations only, and have a record by now. */
export const lostEmptied = sql`
      union all
      select claim, 'consumer' from consumer where generation is null and emptied
        and exists (select from consumers k where k.uuid = consumer.uuid)`;

/** The consumers of which a claim knows what they must still have. Most batches have none, and a statement without these parts. */
const seenConsumers = (claims: readonly ClaimWrite[]) =>
  claims.flatMap(({ consumers }, claim) =>
    consumers.flatMap(({ uuid, seen }) => (seen === undefined ? [] : [{ claim, uuid, seen }])),
  );

/** Locks their allocations, after everything else, and puts beside them what was seen. */
export function lockedAllocations(claims: readonly ClaimWrite[], areClassesLocked: boolean): RawBuilder<unknown> {
  const consumers = seenConsumers(claims);
  if (consumers.length === 0) return sql``;
  const uuids = consumers.flatMap(({ uuid, seen }) => seen.map(() => uuid));
  return sql`
    locked_allocation as materialized (
      select id, consumer_id, resource_provider_id as provider_id, resource_class_id as class_id, used from allocations
      where consumer_id = any(${consumers.map(({ uuid }) => uuid)}::text[])
        and (select count(*) from locked_consumer) is not null
        ${areClassesLocked ? sql`and (select count(*) from locked_class) is not null` : sql``}
      order by id for update
    ),
    seen_allocation as materialized (
      select * from rows from (unnest(${uuids}::text[]), ${seenRows(consumers.flatMap(({ seen }) => seen))}
      ) as s (consumer_id, id, provider_id, class_id, used)
    ),`;
}

/** Consumers whose allocations are not those that were seen. */
export function lostSight(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const consumers = seenConsumers(claims);
  if (consumers.length === 0) return sql``;
  return sql`
      union all
      select c.claim, 'consumer' from unnest(${consumers.map(({ claim }) => claim)}::integer[],
        ${consumers.map(({ uuid }) => uuid)}::text[]) as c (claim, uuid)
      where c.uuid in (
        select coalesce(l.consumer_id, s.consumer_id) from locked_allocation l full join seen_allocation s
          on l.id = s.id and l.consumer_id = s.consumer_id and l.provider_id = s.provider_id and l.class_id = s.class_id
            and l.used = s.used
        where l.id is null or s.id is null
      )`;
}

/** The inventories that are to be, and their classes, which must not vanish meanwhile. */
export const lockedClasses = (claims: readonly ClaimWrite[]): RawBuilder<unknown> => sql`
    inventory as (${newInventories(claims)}),
    inventory_to_remove as (${inventoriesToRemove(claims)}),
    locked_class as materialized (
      select id from resource_classes where id in (select class_id from inventory) order by id for key share
    ),`;

/** Allocations of classes that have another name by now. */
export const lostNames = (claims: readonly ClaimWrite[]): RawBuilder<unknown> => sql`
      union all
      select c.claim, 'class' from (${customClasses(claims)}) as c
      where not exists (select from resource_classes r where r.id = c.class_id and r.name = c.name)`;

/** Inventories of classes that are gone. */
export const lostClasses = sql`
      union all
      select i.claim, 'class' from inventory i where i.class_id not in (select id from locked_class)`;
