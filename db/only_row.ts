import type { Kysely, RawBuilder } from 'kysely';
import type { Tables } from './tables.ts';

/** Runs a query that always gives one row, such as a SELECT without FROM, and returns it. */
export async function onlyRow<Row>(db: Kysely<Tables>, query: RawBuilder<Row>): Promise<Row> {
  const { rows } = await query.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('A SELECT without FROM gave no row.');
  return row;
}
