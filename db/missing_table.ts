import { hasSqlstate, sqlstate } from './sqlstate.ts';

/** The rows of a query; none where its table is not there, as in a database that was never migrated. */
export async function noneWithoutTable<Row>(rows: Promise<readonly Row[]>): Promise<readonly Row[]> {
  try {
    return await rows;
  } catch (error) {
    if (hasSqlstate(error, sqlstate.undefinedTable)) return [];
    throw error;
  }
}
