import type { Database } from '../../db/engine/connect.ts';
import { migrationNames } from '../../db/schema/executed_migrations.ts';
import { raiseSequences } from '../../db/schema/id_sequences.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { readRevision } from '../../db/schema/revision.ts';
import { refuseUnwatchedTables } from '../../db/schema/watched_tables.ts';
import type { Config } from '../config/config.ts';
import { describeDatabase } from '../start/database.ts';
import { printError } from '../text/print.ts';

/**
 * `placement-manage db sync`. Standard output stays empty, as with upstream's command. Standard error gets one line
 * that names the database and its state.
 */
export async function syncSchema(database: Database, { placementDatabase }: Config): Promise<void> {
  const applied = await migrateToLatest(database);
  await refuseUnwatchedTables(database);
  await raiseSequences(database);
  const name = describeDatabase(placementDatabase);
  const state = `${migrationNames.at(-1)}, revision ${await readRevision(database)}`;
  const did = applied.length === 0 ? 'nothing had to be migrated' : `applied ${applied.join(', ')}`;
  printError(`The ${name} is at ${state}: ${did}.`);
}
