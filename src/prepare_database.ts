import type { Database } from '../db/connect.ts';
import { migrateToLatest, pendingMigrations } from '../db/migrate.ts';
import { syncStandardNames } from '../db/sync_standard_names.ts';

/**
 * Makes sure that the schema is up to date, by migrating it where that is asked for (always on the embedded database), and
 * that the standard traits and classes exist.
 *
 * @throws Error where the schema is missing or old and may not be migrated, with the remedy.
 */
export async function prepareDatabase(
  database: Database,
  { syncOnStartup }: { readonly syncOnStartup: boolean },
): Promise<void> {
  if (database.engine === 'embedded' || syncOnStartup) await migrateToLatest(database);
  const pending = await pendingMigrations(database);
  if (pending.length > 0) {
    throw new Error(
      `The database lacks the migrations ${pending.join(', ')}. Run "placement-manage db sync", or set ` +
        '[placement_database] sync_on_startup = true.',
    );
  }
  await syncStandardNames(database);
}
