import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import type { Tables } from '../tables.ts';

/** Rows of several items as parallel arrays, each row with the index of its item. */
type NumberedRows<Row> = {
  /** The index of the item of each row. */
  readonly place: readonly number[];
  column<Value>(value: (row: Row) => Value): Value[];
};

/**
 * The rows of items for `unnest`, so that the text of a statement is the same for any number of items and rows.
 */
export const numbered = <Item, Row>(
  items: readonly Item[],
  rowsOf: (item: Item) => readonly Row[],
): NumberedRows<Row> => {
  const rows = items.flatMap((item, place) => rowsOf(item).map((row) => ({ place, row })));
  return {
    place: rows.map(({ place }) => place),
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
