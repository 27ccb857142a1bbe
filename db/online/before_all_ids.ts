import { type RawBuilder, sql } from 'kysely';

/** A number below all ids, where a pass over a table begins. Ids may be below zero, down to the lowest number that their column takes. */
export const beforeAllIds = Number.MIN_SAFE_INTEGER;

/** An id, or `beforeAllIds`, as a value that is compared with ids. */
export const idOf = (id: number): RawBuilder<number> => sql`${id}::bigint`;
