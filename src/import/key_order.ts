/** A row's primary key: one integer for each of its columns. */
export type RowKey = readonly number[];

/** A condition in SQL with `?` for the values, which both databases answer from the primary key's index. */
export type KeyCondition = { readonly condition: string; readonly values: readonly number[] };

/** The rows behind a key. MySQL finds no range for a comparison of whole rows, so the columns are compared one by one. */
export const behind = (columns: readonly string[], key: RowKey | undefined): KeyCondition =>
  key === undefined ? { condition: 'true', values: [] } : compared('>', '>', columns, key);

/** The rows up to a key and that of the key itself. */
export const upTo = (columns: readonly string[], key: RowKey | undefined): KeyCondition =>
  key === undefined ? { condition: 'true', values: [] } : compared('<', '<=', columns, key);

function compared(strictly: string, last: string, columns: readonly string[], key: RowKey): KeyCondition {
  const [column = '', ...columnsLeft] = columns;
  const [value = 0, ...valuesLeft] = key;
  if (columnsLeft.length === 0) return { condition: `t.${column} ${last} ?`, values: [value] };
  const rest = compared(strictly, last, columnsLeft, valuesLeft);
  return {
    condition: `(t.${column} ${strictly} ? or (t.${column} = ? and ${rest.condition}))`,
    values: [value, value, ...rest.values],
  };
}
