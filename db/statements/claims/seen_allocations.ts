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
