import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { SchemaBehind } from '../engine/failures.ts';
import { missingMigrations, selectExecuted } from './executed_migrations.ts';
import { olderSchema } from './migrate.ts';

/**
 * Makes sure that the database takes writes, and still has the schema with which the service started. The first statement is refused where
 * a write would be, and locks no row.
 *
 * @throws `readOnlyTransaction` where it takes no writes, `insufficientPrivilege` where the role may not write, `SchemaBehind` where an older
 *   dump was restored, and any error of a database that cannot be reached, or has no tables
 */
export async function requireUsable({ transaction }: Pick<Database, 'transaction'>): Promise<void> {
  const [, executed] = await transaction([sql`select from provider_changes where false for update`, selectExecuted]);
  const pending = missingMigrations(executed.map(({ name }) => name));
  if (pending.length > 0) throw new SchemaBehind(olderSchema(pending));
}
