import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';

/**
 * Puts a provider into exactly these aggregates, which come into being by being named. With a generation it is guarded by
 * it, and it grows by one; without (before microversion 1.19) the last of several writers wins: the lock has a statement of its
 * own, so that the next one sees what the others before it wrote.
 *
 * @returns whether it was done: false where the generation was another one, or the provider is gone.
 */
export async function setAggregates(
  { kysely, transaction }: Database,
  write: { readonly providerId: number; readonly generation: number | undefined; readonly uuids: readonly string[] },
): Promise<boolean> {
  // In the order of the UUIDs, so that two writers that name new ones cannot wait for each other in a circle.
  const ensure = sql`insert into placement_aggregates (uuid, created_at)
    select uuid, ${utcNow} from unnest(${write.uuids}::text[]) as uuid order by uuid on conflict (uuid) do nothing`;
  const lock = sql`select id from resource_providers where id = ${write.providerId} for no key update`;
  const guard =
    write.generation === undefined
      ? sql`select id from resource_providers where id = ${write.providerId}`
      : sql`update resource_providers set generation = generation + 1, updated_at = ${utcNow}
          where id = ${write.providerId} and generation = ${write.generation} returning id`;
  const set = sql`
    with guard as (${guard}), wanted as (
      select id from placement_aggregates where uuid = any(${write.uuids}::text[])
    ), removed as (
      delete from resource_provider_aggregates a using guard
      where a.resource_provider_id = guard.id and a.aggregate_id not in (select id from wanted)
    ), added as (
      insert into resource_provider_aggregates (resource_provider_id, aggregate_id, created_at)
      select guard.id, wanted.id, ${utcNow} from guard, wanted on conflict do nothing
    )
    select id from guard`;
  const [, , rows] = await transaction([ensure.compile(kysely), lock.compile(kysely), set.compile(kysely)]);
  return rows?.length === 1;
}
