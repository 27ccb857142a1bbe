import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import type { Tables } from '../tables.ts';

/** A column of rows to insert: its name, the SQL type that its values are written in, and a value for each row. */
export type ColumnOfRows = {
  readonly name: string;
  readonly type: string;
  readonly values: readonly (string | null)[];
};

/** Inserts many rows, ids and all, by one statement. */
export async function insertRows(
  { kysely }: Pick<Database, 'kysely'>,
  table: keyof Tables,
  columns: readonly ColumnOfRows[],
): Promise<void> {
  const names = sql.join(columns.map(({ name }) => sql.ref(name)));
  const arrays = sql.join(columns.map(({ type, values }) => sql`${values}::${sql.raw(type)}[]`));
  await sql`insert into ${sql.table(table)} (${names}) select * from unnest(${arrays})`.execute(kysely);
}
