/** A row's primary key: one integer for each of its columns. */
export type RowKey = readonly number[];

/** A condition in SQL with `?` for the values. Both databases evaluate it with the index of the primary key. */
export type KeyCondition = { readonly condition: string; readonly values: readonly number[] };

/** The rows after a key. MySQL does not use the index to compare whole rows, so each column is compared separately. */
export const behind = (columns: readonly string[], key: RowKey | undefined): KeyCondition =>
  key === undefined ? { condition: 'true', values: [] } : compared('>', '>', columns, key);

/** The rows up to and including a key. */
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
