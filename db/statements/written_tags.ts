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

/** A part of a statement that gives the provider in the table `guard` the tag of a part of it; older ones may have no row. */
export const writtenTag = (part: 'inventories' | 'traits' | 'aggregates', tag: string): RawBuilder<unknown> => sql`
    tagged as (
      insert into resource_provider_etags (resource_provider_id, ${sql.ref(part)}) select id, ${tag}::text from guard
      on conflict (resource_provider_id) do update set ${sql.ref(part)} = excluded.${sql.ref(part)}
    )`;
