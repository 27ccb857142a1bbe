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
