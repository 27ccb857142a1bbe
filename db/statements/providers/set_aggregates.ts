import { sql } from 'kysely';
import { isOnRun } from '../../engine/server_run.ts';
import { utcNow } from '../../engine/utc_now.ts';
import { type PartTags, providerTagsAreWritten, writtenTag } from '../written_tags.ts';
import { type JudgedProvider, nextGeneration, type ProviderWrite } from './provider_write.ts';

/**
 * Sets the aggregates of a provider. Aggregates that do not exist are created. With a generation, the provider must
 * still have it, and it is raised by one. Without one (before microversion 1.19), the last of several writes wins: a
 * separate statement takes the lock, so that the next one sees what earlier transactions wrote.
 *
 * Nothing is written if the generation or the aggregates are other ones, or if the provider or an aggregate was
 * deleted.
 *
 * @param write.seen the aggregates that the provider must still be in. The generation alone does not prove this, since
 *   writes below microversion 1.19 do not raise it.
 */
export function setAggregates(
  write: Omit<JudgedProvider, 'generation'> &
    PartTags & {
      readonly generation: number | undefined;
      readonly uuids: readonly string[];
      readonly seen?: readonly string[] | undefined;
    },
): ProviderWrite {
  // In the order of the UUIDs, so that two transactions that insert the same aggregates cannot deadlock.
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
      ? sql`select id from resource_providers
        where id = ${write.providerId} and ${isOnRun(write.serverRun)} and ${areThere}`
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
