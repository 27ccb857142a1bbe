import { type RawBuilder, sql } from 'kysely';

/*
 * Our statements write the entity tags of the rows that they change, and report this to the triggers of migrations 004 and 005, which
 * compute the tags for writes of other programs. Computed by SQL, the tags took a quarter of the time of creating a
 * provider.
 */

/** Tells the triggers that this transaction writes the tags of consumers itself. */
export const consumerTagsAreWritten = sql`select set_config('placement.etags', 'written', true)`;

/**
 * Tells the triggers that this transaction writes the tags of providers itself. Join it with the rows of an INSERT
 * whose row triggers read the setting, or else with the rows of the statement.
 */
export const providerTagsAreWritten = sql`(select set_config('placement.etags', 'providers', true)) as settings`;

/**
 * As `providerTagsAreWritten`, and tells the trigger of migration 006 whether the rows of the part put each provider whose generation is
 * raised into the change log anyway. A transaction may have statements of both kinds.
 */
export const partsAreWritten = (generationsAreLogged: boolean): RawBuilder<unknown> =>
  sql`(select set_config('placement.etags', 'providers', true),
      set_config('placement.generations', ${sql.lit(generationsAreLogged ? 'logged' : '')}, true)) as settings`;

/** The entity tags of a part of a provider: after the write, and of the content that the write was made for. */
export type PartTags = { readonly tag: string; readonly tagBefore: string };

/**
 * A part of a statement: writes the tags of a part of the providers in table `guard`, as table `requested` has them. Old providers may have no
 * row of tags. If a stored tag is not `tag_before`, another program changed the part, maybe while the statement ran, and the rows of that
 * program stay beside ours. Then the tag is set to null, and a trigger computes it from all rows (migration 005).
 */
export const writtenTags = (part: 'inventories' | 'traits' | 'aggregates'): RawBuilder<unknown> => sql`
    tagged as (
      insert into resource_provider_etags as present (resource_provider_id, ${sql.ref(part)})
      select guard.id, requested.tag from guard join requested using (index)
      on conflict (resource_provider_id) do update set ${sql.ref(part)} = case when coalesce(
        present.${sql.ref(part)} = (select tag_before from requested where provider_id = present.resource_provider_id), true
      ) then excluded.${sql.ref(part)} end
    )`;
