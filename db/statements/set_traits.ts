import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';

/**
 * Gives a provider exactly these traits, guarded by its generation, which grows by one.
 *
 * @returns whether the generation still was the expected one; nothing was changed otherwise.
 * @throws a foreign key violation where a trait was deleted meanwhile.
 */
export async function setTraits(
  { kysely }: Database,
  write: { readonly providerId: number; readonly generation: number; readonly traitIds: readonly number[] },
): Promise<boolean> {
  const { rows } = await sql<{ id: number }>`
    with guard as (
      update resource_providers set generation = coalesce(generation, 0) + 1, updated_at = ${utcNow}
      where id = ${write.providerId} and coalesce(generation, 0) = ${write.generation}
      returning id
    ), removed as (
      delete from resource_provider_traits t using guard
      where t.resource_provider_id = guard.id and t.trait_id <> all(${write.traitIds}::integer[])
    ), added as (
      insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
      select guard.id, trait_id, ${utcNow} from guard, unnest(${write.traitIds}::integer[]) as trait_id
      on conflict do nothing
    )
    select id from guard`.execute(kysely);
  return rows.length === 1;
}
