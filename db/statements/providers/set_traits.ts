import { sql } from 'kysely';
import { utcNow } from '../../engine/utc_now.ts';
import { type PartTags, providerTagsAreWritten, writtenTag } from '../written_tags.ts';
import { type JudgedProvider, nextGeneration, type ProviderWrite } from './provider_write.ts';

/**
 * Sets the traits of a provider. The provider must still have its generation, which is raised by one.
 *
 * Nothing is written if the generation is another one, or if there is no trait with one of these ids and names.
 */
export function setTraits(
  write: JudgedProvider & PartTags & { readonly traits: readonly { readonly id: number; readonly name: string }[] },
): ProviderWrite {
  const ids = write.traits.map(({ id }) => id);
  const names = write.traits.map(({ name }) => name);
  const set = sql`
    with wanted as materialized (
      select id from traits where (id, name) in (select * from unnest(${ids}::integer[], ${names}::text[])) for key share
    ), guard as (${nextGeneration(write, sql`(select count(*) from wanted) = ${ids.length}`)}
    ), removed as (
      delete from resource_provider_traits t using guard
      where t.resource_provider_id = guard.id and t.trait_id <> all(${ids}::integer[])
    ), added as (
      insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
      select guard.id, wanted.id, ${utcNow} from guard, wanted on conflict do nothing
    ), ${writtenTag('traits', write)}
    select id from guard, ${providerTagsAreWritten}`;
  return { lockedId: write.providerId, statements: [set] };
}
