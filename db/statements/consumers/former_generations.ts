import { type RawBuilder, sql } from 'kysely';

/**
 * How many generations the former consumers with a UUID had; 0 if there was none. It is looked up for each row: with a
 * join, a plan from a time with few former consumers would read all of them.
 *
 * @param uuid of the consumer
 */
export const formerGenerations = (uuid: RawBuilder<unknown>): RawBuilder<number> =>
  sql<number>`coalesce((select generations from former_consumers where uuid = ${uuid}), 0)::float8`;

/**
 * A condition of a deletion of records that no other transaction has seen, because the same transaction has made them: they
 * leave no former consumers.
 */
export const leavesNoFormer = sql<boolean>`(select set_config('placement.former_consumers', 'none', true)) is not null`;
