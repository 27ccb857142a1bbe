import type { Database } from '../../db/connect.ts';
import { migrateToLatest, olderSchema, pendingMigrations } from '../../db/migrate.ts';
import { raiseSequences } from '../../db/statements/id_sequences.ts';
import { isImportUnfinished, unfinishedImportProblem } from '../../db/statements/unfinished_import.ts';
import { syncStandardNames } from '../../db/sync_standard_names.ts';
import { refuseUnwatchedTables } from '../../db/watched_tables.ts';

/**
 * Makes sure that the schema is up to date, by migrating it where that is asked for (always on the embedded database),
 * that the standard traits and classes exist, and that new rows get ids that are free.
 *
 * @throws Error with the remedy, where the schema is missing or old and may not be migrated, or lost triggers, an import is
 *   unfinished, or the role may not raise the ids.
 */
export async function prepareDatabase(
  database: Database,
  { syncOnStartup }: { readonly syncOnStartup: boolean },
): Promise<void> {
  if (database.engine === 'embedded' || syncOnStartup) await migrateToLatest(database);
  const pending = await pendingMigrations(database);
  if (pending.length > 0) throw new Error(olderSchema(pending));
  await refuseUnwatchedTables(database);
  if (await isImportUnfinished(database)) throw new Error(unfinishedImportProblem);
  await raiseSequences(database);
  await syncStandardNames(database);
}
