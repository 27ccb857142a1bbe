import type { SourceDatabase, SourceRow } from './source.ts';
import type { SourceTable } from './source_schema.ts';

/** A row's primary key: one integer for each of its columns. */
export type RowKey = readonly number[];

/** A condition in SQL with `?` for the values. Both databases evaluate it with the index of the primary key. */
type KeyCondition = { readonly condition: string; readonly values: readonly number[] };

/** The rows after a key. MySQL does not use the index to compare whole rows, so each column is compared separately. */
export const rowsAfter = (columns: readonly string[], key: RowKey | undefined): KeyCondition =>
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

/** Consecutive rows of a table, one or more. */
export type SourcePage = { readonly rows: readonly SourceRow[]; readonly last: RowKey };

/** Rows of a page: enough that the round trips cost little, and few enough that a process that dies loses little work. */
export const defaultPageSize = 5000;

/** How many rows a table has, or how many after a key. */
export async function countRows(
  source: SourceDatabase,
  { table, exists }: SourceTable,
  after?: RowKey,
): Promise<number> {
  if (!exists) return 0;
  const { condition, values } = rowsAfter(table.key, after);
  const [row] = await source.query(`select count(*) from ${table.name} t where ${condition}`, values);
  return Number(row?.[0]);
}

/**
 * Reads a table in the order of its primary key, a page at a time. It requests the next page while the caller uses this
 * page.
 *
 * @param after the first page begins after this key
 */
export async function* readPages(
  source: SourceDatabase,
  { table, exists, expressions }: SourceTable,
  after: RowKey | undefined,
  pageSize: number,
): AsyncGenerator<SourcePage> {
  if (!exists) return;
  const indexes = table.key.map((column) => Object.keys(table.columns).indexOf(column));
  const order = table.key.map((column) => `t.${column}`).join(', ');
  const read = async (key: RowKey | undefined): Promise<SourcePage | undefined> => {
    const { condition, values } = rowsAfter(table.key, key);
    const rows = await source.query(
      `select ${expressions.join(', ')} from ${table.name} t where ${condition} order by ${order} limit ${pageSize}`,
      values,
    );
    const last = rows.at(-1);
    return last === undefined ? undefined : { rows, last: indexes.map((index) => Number(last[index])) };
  };
  let next = read(after);
  for (;;) {
    const page = await next;
    if (page === undefined) return;
    next = page.rows.length < pageSize ? Promise.resolve(undefined) : read(page.last);
    next.catch(() => {}); // the await of `next` throws the error; this only prevents an unhandled rejection
    yield page;
  }
}
