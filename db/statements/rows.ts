import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import type { Tables } from '../tables.ts';

/** Rows of several items as parallel arrays, each row with the index of its item. */
type NumberedRows<Row> = {
  /** The index of the item of each row. */
  readonly index: readonly number[];
  column<Value>(value: (row: Row) => Value): Value[];
};

/**
 * The rows of items for `unnest`, so that the text of a statement is the same for any number of items and rows.
 */
export const numbered = <Item, Row>(
  items: readonly Item[],
  rowsOf: (item: Item) => readonly Row[],
): NumberedRows<Row> => {
  const rows = items.flatMap((item, index) => rowsOf(item).map((row) => ({ index, row })));
  return {
    index: rows.map(({ index }) => index),
    column: (value) => rows.map(({ row }) => value(row)),
  };
};

/** A column of the rows to insert: its name, the SQL type of its values, and a value for each row. */
type ColumnOfRows = {
  readonly name: string;
  readonly type: string;
  readonly values: readonly (string | null)[];
};

/** Inserts many rows with their ids by one statement. */
export async function insertRows(
  { kysely }: Pick<Database, 'kysely'>,
  table: keyof Tables,
  columns: readonly ColumnOfRows[],
): Promise<void> {
  const names = sql.join(columns.map(({ name }) => sql.ref(name)));
  const arrays = sql.join(columns.map(({ type, values }) => sql`${values}::${sql.raw(type)}[]`));
  await sql`insert into ${sql.table(table)} (${names}) select * from unnest(${arrays})`.execute(kysely);
}

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

/*
 * Our statements write the entity tags of what they change, and tell the triggers of migrations 004 and 005, which
 * compute the tags for writes of other programs. Computed by SQL, the tags took a quarter of the time of creating a
 * provider.
 */

/** Tells the triggers that this transaction writes the tags of consumers itself. */
export const consumerTagsAreWritten = sql`select set_config('placement.etags', 'written', true)`;

/**
 * Tells the triggers that this transaction writes the tags of providers itself. Join it with the rows of an INSERT
 * whose row triggers read the setting, or else with the rows of the statement.
 */
export const providerTagsAreWritten = sql`(select set_config('placement.etags', 'providers', true)) as settings`;

/**
 * As `providerTagsAreWritten`, and tells the trigger of migration 006 whether the rows of the part put each provider whose generation is
 * raised into the change log anyway. A transaction may have statements of both kinds.
 */
export const partsAreWritten = (generationsAreLogged: boolean): RawBuilder<unknown> =>
  sql`(select set_config('placement.etags', 'providers', true),
      set_config('placement.generations', ${sql.lit(generationsAreLogged ? 'logged' : '')}, true)) as settings`;

/** The entity tags of a part of a provider: after the write, and of the content that the write was made for. */
export type PartTags = { readonly tag: string; readonly tagBefore: string };

/**
 * A part of a statement: writes the tags of a part of the providers in table `guard`, as table `requested` has them. Old providers may have no
 * row of tags. If a stored tag is not `tag_before`, another program changed the part, maybe while the statement ran, and the rows of that
 * program stay beside ours. Then the tag is set to null, and a trigger computes it from all rows (migration 005).
 */
export const writtenTags = (part: 'inventories' | 'traits' | 'aggregates'): RawBuilder<unknown> => sql`
    tagged as (
      insert into resource_provider_etags as present (resource_provider_id, ${sql.ref(part)})
      select guard.id, requested.tag from guard join requested using (index)
      on conflict (resource_provider_id) do update set ${sql.ref(part)} = case when coalesce(
        present.${sql.ref(part)} = (select tag_before from requested where provider_id = present.resource_provider_id), true
      ) then excluded.${sql.ref(part)} end
    )`;
