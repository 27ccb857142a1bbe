import { sql } from 'kysely';
import type { Database } from './connect.ts';

/**
 * Makes sure that the database takes writes. The statement is refused where a write would be, and locks no row.
 *
 * @throws `readOnlyTransaction` where it takes none, `insufficientPrivilege` where the role may not write, and any error of a
 *   database that cannot be reached
 */
export async function requireWritable({ transaction }: Pick<Database, 'transaction'>): Promise<void> {
  await transaction([sql`select from provider_changes where false for update`]);
}
