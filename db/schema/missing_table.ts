import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { hasSqlstate, sqlstate } from '../engine/sqlstate.ts';

/** Whether the database has a table of this name. */
export async function hasTable({ kysely }: Pick<Database, 'kysely'>, name: string): Promise<boolean> {
  return (await onlyRow(kysely, sql<{ there: boolean }>`select to_regclass(${name}) is not null as there`)).there;
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
