import { sql } from 'kysely';
import { utcNow } from '../utc_now.ts';
import { type JudgedProvider, nextGeneration, type ProviderWrite } from './provider_write.ts';
import { type PartTags, providerTagsAreWritten, writtenTag } from './written_tags.ts';

/**
 * Puts a provider into exactly these aggregates, which come into being by being named. With a generation it is guarded by
 * it, and it grows by one; without (before microversion 1.19) the last of several writers wins: the lock has a statement of its
 * own, so that the next one sees what the others before it wrote.
 *
 * It is not done where the generation or the aggregates were other ones, or the provider or an aggregate is gone.
 *
 * @param write.seen the aggregates that it must still be in: the generation alone does not prove it, since writers below 1.19
 *   leave it as it is
 */
export function setAggregates(
  write: Omit<JudgedProvider, 'generation'> &
    PartTags & {
      readonly generation: number | undefined;
      readonly uuids: readonly string[];
      readonly seen?: readonly string[] | undefined;
    },
): ProviderWrite {
  // In the order of the UUIDs, so that two writers that name new ones cannot wait for each other in a circle.
  const ensure = sql`insert into placement_aggregates (uuid, created_at)
    select uuid, ${utcNow} from unnest(${write.uuids}::text[]) as uuid order by uuid on conflict (uuid) do nothing`;
  const lock = sql`select id from resource_providers where id = ${write.providerId} for no key update`;
  const asSeen =
    write.seen === undefined
      ? sql`true`
      : sql`not exists (
          select from (
            select a.uuid::text as uuid from resource_provider_aggregates m join placement_aggregates a on a.id = m.aggregate_id
            where m.resource_provider_id = ${write.providerId}
          ) as present full join unnest(${write.seen}::text[]) as seen (uuid) using (uuid)
          where present.uuid is null or seen.uuid is null
        )`;
  const areThere = sql`(select count(*) from wanted) = ${write.uuids.length}`;
  const { generation, ...target } = write;
  const guard =
    generation === undefined
      ? sql`select id from resource_providers where id = ${write.providerId} and ${areThere}`
      : nextGeneration({ ...target, generation }, sql`${areThere} and ${asSeen}`);
  const set = sql`
    with wanted as materialized (
      select id from placement_aggregates where uuid = any(${write.uuids}::text[]) for key share
    ), guard as (${guard}
    ), removed as (
      delete from resource_provider_aggregates a using guard
      where a.resource_provider_id = guard.id and a.aggregate_id not in (select id from wanted)
    ), added as (
      insert into resource_provider_aggregates (resource_provider_id, aggregate_id, created_at)
      select guard.id, wanted.id, ${utcNow} from guard, wanted on conflict do nothing
    ), ${writtenTag('aggregates', write)}
    select id from guard, ${providerTagsAreWritten}`;
  return { lockedId: write.providerId, statements: [ensure, lock, set] };
}
