import type { Database } from '../../db/engine/connect.ts';
import { raiseSequences } from '../../db/schema/id_sequences.ts';
import { migrateToLatest, olderSchema, pendingMigrations } from '../../db/schema/migrate.ts';
import { withUsageRemedy } from '../../db/schema/privileges.ts';
import { syncStandardNames } from '../../db/schema/sync_standard_names.ts';
import { isImportUnfinished, unfinishedImportProblem } from '../../db/schema/unfinished_import.ts';
import { refuseUnwatchedTables } from '../../db/schema/watched_tables.ts';

/**
 * Makes sure that the schema is up to date, that the standard traits and classes exist, and that new rows get free ids.
 * The schema is migrated if the configuration says so, and always on the embedded database.
 *
 * @throws Error with the remedy if the schema is missing or old and may not be migrated, if it has lost triggers, if an
 *   import is unfinished, or if the database role may not use the tables or raise the ids
 */
export function prepareDatabase(database: Database, options: { readonly syncOnStartup: boolean }): Promise<void> {
  return withUsageRemedy(database, () => prepare(database, options));
}

async function prepare(database: Database, { syncOnStartup }: { readonly syncOnStartup: boolean }): Promise<void> {
  if (database.engine === 'embedded' || syncOnStartup) await migrateToLatest(database);
  const pending = await pendingMigrations(database);
  if (pending.length > 0) throw new Error(olderSchema(pending));
  await refuseUnwatchedTables(database);
  if (await isImportUnfinished(database)) throw new Error(unfinishedImportProblem);
  await raiseSequences(database);
  await syncStandardNames(database);
}
