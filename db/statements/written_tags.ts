import { type RawBuilder, sql } from 'kysely';

/*
 * Who writes brings the entity tags along that he makes others, and tells the triggers so (migrations 004 and 005), which give
 * everybody else's writes theirs: computed by SQL they took the database a quarter of the time of creating a provider.
 */

/** Tells the triggers of this transaction that it leaves the tags of consumers right by itself. */
export const consumerTagsAreWritten = sql`select set_config('placement.etags', 'written', true)`;

/**
 * Tells the triggers of this transaction that its changes of providers bring their tags. To be joined with the rows of an INSERT
 * whose triggers look at it for each row, or with those of the statement.
 */
export const providerTagsAreWritten = sql`(select set_config('placement.etags', 'providers', true)) as told`;

/** The entity tag of what a part of a provider is to be, and of what its writer knows it as. */
export type PartTags = { readonly tag: string; readonly tagBefore: string };

/**
 * A part of a statement that gives the provider in the table `guard` the tag of a part of it; older ones may have no row. Where
 * the part has another tag than its writer knows, others changed it, maybe while the statement ran: what they wrote stays beside
 * ours then, and a trigger computes the tag of all (migration 005).
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
