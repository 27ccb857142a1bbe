import { type RawBuilder, sql } from 'kysely';

/** A row of `allocations` as somebody saw it. Every rewrite gives the rows other ids. */
export type SeenAllocation = {
  readonly id: number;
  readonly providerId: number;
  readonly classId: number;
  readonly used: number;
};

/** Seen rows as a table `(id, provider_id, class_id, used)`. */
export const seenRows = (seen: readonly SeenAllocation[]): RawBuilder<unknown> => {
  const column = (name: keyof SeenAllocation) => seen.map((row) => row[name]);
  return sql`unnest(${column('id')}::integer[], ${column('providerId')}::integer[], ${column('classId')}::integer[],
    ${column('used')}::integer[])`;
};
