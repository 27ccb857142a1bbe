import { type RawBuilder, sql } from 'kysely';

/*
 * Our statements write the entity tags of what they change, and tell the triggers of migrations 004 and 005, which
 * compute the tags for writes of other programs. Computed by SQL, the tags took a quarter of the time of creating a
 * provider.
 */

/** Tells the triggers that this transaction writes the tags of consumers itself. */
export const consumerTagsAreWritten = sql`select set_config('placement.etags', 'written', true)`;

/**
 * Tells the triggers that this transaction writes the tags of providers itself. Join it with the rows of an INSERT
 * whose row triggers read the setting, or else with the rows of the statement.
 */
export const providerTagsAreWritten = sql`(select set_config('placement.etags', 'providers', true)) as told`;

/** The entity tags of a part of a provider: after the write, and of the content that the write was made for. */
export type PartTags = { readonly tag: string; readonly tagBefore: string };

/**
 * A part of a statement: writes the tag of a part of the provider in table `guard`. Old providers may have no row of
 * tags. If the stored tag is not `tagBefore`, another program changed the part, maybe while the statement ran, and its
 * rows stay beside ours. Then the tag is set to null, and a trigger computes it from all rows (migration 005).
 */
export const writtenTag = (
  part: 'inventories' | 'traits' | 'aggregates',
  { tag, tagBefore }: PartTags,
): RawBuilder<unknown> => sql`
    tagged as (
      insert into resource_provider_etags as present (resource_provider_id, ${sql.ref(part)}) select id, ${tag}::text from guard
      on conflict (resource_provider_id) do update set ${sql.ref(part)} =
        case when coalesce(present.${sql.ref(part)} = ${tagBefore}::text, true) then excluded.${sql.ref(part)} end
    )`;
