import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { noneWithoutTable } from './missing_table.ts';

/**
 * The names of the migrations that the database has had, oldest first, those of other releases among them; none where it never
 * had any.
 */
export async function executedMigrations({ patient }: Pick<Database, 'patient'>): Promise<readonly string[]> {
  const query = sql<{ name: string }>`select name from kysely_migration order by name`;
  const rows = await noneWithoutTable(query.execute(patient).then((result) => result.rows));
  return rows.map(({ name }) => name);
}
