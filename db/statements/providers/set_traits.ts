import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../../engine/time.ts';
import { type PartTags, partsAreWritten, writtenTags } from '../entity_tags.ts';
import { numbered } from '../numbered_rows.ts';
import {
  type JudgedProvider,
  memberChanges,
  raisedGenerations,
  requestedWrites,
  writtenGuards,
} from './judged_provider.ts';

type Trait = { readonly id: number; readonly name: string };

/** The new and the present traits of a provider. */
export type WantedTraits = JudgedProvider &
  PartTags & { readonly traits: readonly Trait[]; readonly present: readonly Trait[] };

const idsOf = (traits: readonly Trait[]): readonly number[] => traits.map(({ id }) => id);

/**
 * Sets the traits of providers. Each provider must still have its generation, which is raised by one.
 *
 * Nothing is written for a provider that has changed since the judgement, or if there is no trait with one of these ids and names.
 */
export function setTraits(writes: readonly WantedTraits[]): readonly RawBuilder<unknown>[] {
  const wanted = numbered(writes, ({ traits }) => traits);
  const named = numbered(writes, ({ traits, present }) => [...traits, ...present]);
  const changes = memberChanges(
    writes.map(({ present, traits }) => ({ present: idsOf(present), wanted: idsOf(traits) })),
  );
  const removal = sql`removed as (
      delete from resource_provider_traits t using guard
      where t.resource_provider_id = guard.id
        and not exists (select from wanted where wanted.index = guard.index and wanted.id = t.trait_id)
    ),`;
  const set = sql`
    with ${requestedWrites(writes)}, wanted as materialized (
      select * from unnest(${wanted.index}::integer[], ${wanted.column(({ id }) => id)}::integer[]) as w (index, id)
    ), named as materialized (
      select * from unnest(${named.index}::integer[], ${named.column(({ id }) => id)}::integer[],
        ${named.column(({ name }) => name)}::text[]) as n (index, id, name)
    ), trait as materialized (
      select id, name from traits where id = any(${[...new Set(named.column(({ id }) => id))]}::integer[])
        and (id, name) in (select id, name from named) for key share
    ), missing as materialized (
      select index from named where (id, name) not in (select id, name from trait)
    ), ${raisedGenerations(writes)}, ${changes.removes ? removal : sql``} added as (
      insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
      select guard.id, wanted.id, ${utcNow} from guard join wanted using (index) on conflict do nothing
    ), ${writtenTags('traits')}
    ${writtenGuards(partsAreWritten(changes.areLogged))}`;
  return [set];
}
