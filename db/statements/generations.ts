import { type RawBuilder, sql } from 'kysely';

/** How many generations there are: the columns are integers of 4 bytes. */
const numberOfGenerations = 2 ** 31;

/**
 * The generation of a provider or consumer after it was raised. After 2147483647, which SQL may have written, follows
 * 0: otherwise every claim on a provider with the highest generation would fail. Generations are only compared for
 * equality.
 */
export const laterGeneration = (generation: number, by: number): number => (generation + by) % numberOfGenerations;

/** The inverse of `laterGeneration`. */
export const earlierGeneration = (generation: number, by: number): number =>
  generation >= 0 && generation < by ? generation - by + numberOfGenerations : generation - by;

/** `laterGeneration` as SQL, for a column. Null, which old rows may have, means 0. */
export const raised = (column: RawBuilder<unknown>, by: RawBuilder<unknown> = sql`1`): RawBuilder<unknown> =>
  sql`((coalesce(${column}, 0)::bigint + ${by}) % ${sql.lit(numberOfGenerations)})::integer`;
