import { type RawBuilder, sql } from 'kysely';

/** What somebody saw of a provider's row and wants to find there still: all that its entity tag is of and that can change. */
export type SeenProvider = { readonly name: string; readonly parentId: number | null };

/** The condition on `resource_providers p`; true where nothing was seen. */
export const isAsSeen = (seen: SeenProvider | undefined): RawBuilder<boolean> =>
  seen === undefined
    ? sql`true`
    : sql`(coalesce(p.name, '') = ${seen.name}::text and p.parent_provider_id is not distinct from ${seen.parentId}::integer)`;
