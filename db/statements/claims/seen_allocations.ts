import { type RawBuilder, sql } from 'kysely';

/** A row of `allocations` as it was read before. Each time a consumer is written, its rows get new ids. */
export type SeenAllocation = {
  readonly id: number;
  readonly providerId: number;
  readonly classId: number;
  readonly used: number;
};

/** The same with the names that a client has seen: those of its provider and its class, of which an entity tag is made. */
export type NamedAllocation = SeenAllocation & { readonly provider_uuid: string; readonly class_name: string };

/** These rows as a table `(id, provider_id, class_id, used)`. */
export const seenRows = (seen: readonly SeenAllocation[]): RawBuilder<unknown> => {
  const column = (name: keyof SeenAllocation) => seen.map((row) => row[name]);
  return sql`unnest(${column('id')}::integer[], ${column('providerId')}::integer[], ${column('classId')}::integer[],
    ${column('used')}::integer[])`;
};

/**
 * Whether a consumer has exactly these allocations, and their providers and classes have the same names. Those of deleted providers or
 * classes are ignored, since no reader sees them.
 *
 * An earlier statement must have locked the consumer: a rename of a class locks all consumers that have it.
 */
export const hasSeen = (uuid: string, seen: readonly NamedAllocation[]) => sql<boolean>`not exists (
          with present as (
            select a.id, a.resource_provider_id, p.uuid::text, a.resource_class_id, k.name::text, a.used from allocations a
            join resource_providers p on p.id = a.resource_provider_id join resource_classes k on k.id = a.resource_class_id
            where a.consumer_id = ${uuid}
          ), seen as (
            select * from unnest(${seen.map(({ id }) => id)}::integer[], ${seen.map(({ providerId }) => providerId)}::integer[],
              ${seen.map(({ provider_uuid }) => provider_uuid)}::text[], ${seen.map(({ classId }) => classId)}::integer[],
              ${seen.map(({ class_name }) => class_name)}::text[], ${seen.map(({ used }) => used)}::integer[])
          )
          (table present except all table seen) union all (table seen except all table present)
        )`;
