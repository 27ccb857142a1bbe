import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import type { Tables } from '../schema/tables.ts';

/** A column of the rows to insert: its name, the SQL type of its values, and a value for each row. */
export type ColumnOfRows = {
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
