import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../../engine/utc_now.ts';
import { numbered } from '../numbered_rows.ts';
import { type PartTags, providerTagsAreWritten, writtenTags } from '../written_tags.ts';
import { askedWrites, type JudgedProvider, raisedGenerations } from './judged_provider.ts';

/** The traits that a provider is to have. */
export type WantedTraits = JudgedProvider &
  PartTags & { readonly traits: readonly { readonly id: number; readonly name: string }[] };

/**
 * Sets the traits of providers. Each provider must still have its generation, which is raised by one.
 *
 * Nothing is written for a provider with another generation, or if there is no trait with one of these ids and names.
 */
export function setTraits(writes: readonly WantedTraits[]): readonly RawBuilder<unknown>[] {
  const { place, column } = numbered(writes, ({ traits }) => traits);
  const set = sql`
    with ${askedWrites(writes)}, wanted as materialized (
      select * from unnest(${place}::integer[], ${column(({ id }) => id)}::integer[], ${column(({ name }) => name)}::text[]
      ) as w (place, id, name)
    ), trait as materialized (
      select id, name from traits where (id, name) in (select id, name from wanted) for key share
    ), missing as materialized (
      select place from wanted where (id, name) not in (select id, name from trait)
    ), ${raisedGenerations()}, removed as (
      delete from resource_provider_traits t using guard
      where t.resource_provider_id = guard.id
        and not exists (select from wanted where wanted.place = guard.place and wanted.id = t.trait_id)
    ), added as (
      insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
      select guard.id, wanted.id, ${utcNow} from guard join wanted using (place) on conflict do nothing
    ), ${writtenTags('traits')}
    select place from guard, ${providerTagsAreWritten}`;
  return [set];
}
