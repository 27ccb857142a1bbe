import { sql } from 'kysely';
import { utcNow } from '../utc_now.ts';
import { type JudgedProvider, nextGeneration, type ProviderWrite } from './provider_write.ts';

/**
 * Gives a provider exactly these traits, guarded by its generation, which grows by one.
 *
 * It is not done where the generation is another one, and fails by a foreign key violation where a trait was deleted.
 */
export function setTraits(write: JudgedProvider & { readonly traitIds: readonly number[] }): ProviderWrite {
  const set = sql`
    with guard as (${nextGeneration(write)}
    ), removed as (
      delete from resource_provider_traits t using guard
      where t.resource_provider_id = guard.id and t.trait_id <> all(${write.traitIds}::integer[])
    ), added as (
      insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
      select guard.id, trait_id, ${utcNow} from guard, unnest(${write.traitIds}::integer[]) as trait_id
      on conflict do nothing
    )
    select id from guard`;
  return { lockedId: write.providerId, statements: [set] };
}
