import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { hasSqlstate, sqlstate } from './sqlstate.ts';

/**
 * The names of the migrations that the database has had, oldest first, those of other releases among them; none where it never
 * had any.
 */
export async function executedMigrations({ patient }: Pick<Database, 'patient'>): Promise<readonly string[]> {
  try {
    const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(patient);
    return rows.map(({ name }) => name);
  } catch (error) {
    if (hasSqlstate(error, sqlstate.undefinedTable)) return [];
    throw error;
  }
}
