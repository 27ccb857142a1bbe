import { type QueryExecutorProvider, sql } from 'kysely';
import { hasSqlstate, sqlstate } from '../engine/failures.ts';
import { onlyRow } from '../engine/only_row.ts';

/** Columns that a migration adds to a table, with their types. They may be null. */
export type Columns = { readonly table: string; readonly columns: Readonly<Record<string, string>> };

/**
 * Adds the columns that a table lacks. Without missing columns no lock is taken; `add column if not exists` would take one. Where
 * the table does not exist, nothing is done.
 */
export async function addMissingColumns(db: QueryExecutorProvider, { table, columns }: Columns): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select attname as name from pg_attribute where attrelid = to_regclass(${table}) and not attisdropped`.execute(db);
  const missing = Object.entries(columns).filter(([name]) => !rows.some((row) => row.name === name));
  if (rows.length === 0 || missing.length === 0) return;
  const clauses = missing.map(([name, type]) => sql`add column ${sql.id(name)} ${sql.raw(type)}`);
  await sql`alter table ${sql.table(table)} ${sql.join(clauses)}`.execute(db);
}

/** Whether the database has a table of this name. */
export async function hasTable(db: QueryExecutorProvider, name: string): Promise<boolean> {
  return (await onlyRow(db, sql<{ there: boolean }>`select to_regclass(${name}) is not null as there`)).there;
}

/** The rows of a query; none if its table does not exist, as in a database that was never migrated. */
export async function noneWithoutTable<Row>(rows: Promise<readonly Row[]>): Promise<readonly Row[]> {
  try {
    return await rows;
  } catch (error) {
    if (hasSqlstate(error, sqlstate.undefinedTable)) return [];
    throw error;
  }
}
