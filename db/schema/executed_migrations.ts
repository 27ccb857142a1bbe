import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { noneWithoutTable } from './missing_table.ts';

/**
 * The names of all migrations that were run on the database, oldest first, including those of other releases; an empty
 * list if none was run.
 */
export async function executedMigrations({ patient }: Pick<Database, 'patient'>): Promise<readonly string[]> {
  const query = sql<{ name: string }>`select name from kysely_migration order by name`;
  const rows = await noneWithoutTable(
    patient
      .transaction()
      .execute((trx) => query.execute(trx))
      .then((result) => result.rows),
  );
  return rows.map(({ name }) => name);
}
