import type { Kysely } from 'kysely';
import { addMissingColumns } from '../missing_table.ts';

/** How long the machine of a service has been up, as its agent reports it; null if the agent does not. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await addMissingColumns(db, { table: 'services', columns: { uptime: 'varchar(255)' } });
}
