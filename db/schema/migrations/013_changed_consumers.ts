import type { Kysely } from 'kysely';
import { addMissingColumns } from '../missing_table.ts';

/**
 * Columns of the change log for rows about consumers, which the next migration writes. It is a separate migration, since it waits for the
 * writers of the change log: some of them wait for tables that the next one locks.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await addMissingColumns(db, {
    table: 'provider_changes',
    columns: { consumer_ids: 'varchar(36)[]', logged_at: 'timestamptz' },
  });
}
