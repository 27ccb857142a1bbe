import type { QueryExecutorProvider, RawBuilder } from 'kysely';

/** Runs a query that always returns one row, such as a SELECT without FROM or of a count, and returns the row. */
export async function onlyRow<Row>(db: QueryExecutorProvider, query: RawBuilder<Row>): Promise<Row> {
  const { rows } = await query.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('A query that always gives one row gave none.');
  return row;
}
