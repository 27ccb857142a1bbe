import { type RawBuilder, sql } from 'kysely';

/** A row of `allocations` as it was read before. Each time a consumer is written, its rows get new ids. */
export type SeenAllocation = {
  readonly id: number;
  readonly providerId: number;
  readonly classId: number;
  readonly used: number;
};

/** These rows as a table `(id, provider_id, class_id, used)`. */
export const seenRows = (seen: readonly SeenAllocation[]): RawBuilder<unknown> => {
  const column = (name: keyof SeenAllocation) => seen.map((row) => row[name]);
  return sql`unnest(${column('id')}::integer[], ${column('providerId')}::integer[], ${column('classId')}::integer[],
    ${column('used')}::integer[])`;
};

/**
 * Whether a consumer has exactly these allocations. Those of deleted providers or classes are ignored, since no reader
 * sees them.
 */
export const hasSeen = (uuid: string, seen: readonly SeenAllocation[]) => sql<boolean>`not exists (
          with present as (
            select a.id, a.resource_provider_id, a.resource_class_id, a.used from allocations a
            join resource_providers p on p.id = a.resource_provider_id join resource_classes k on k.id = a.resource_class_id
            where a.consumer_id = ${uuid}
          ), seen as (select * from ${seenRows(seen)})
          (table present except all table seen) union all (table seen except all table present)
        )`;
