import type { Database } from '../../db/connect.ts';
import { migrateToLatest, migrations } from '../../db/migrate.ts';
import { readRevision } from '../../db/revision.ts';
import { raiseSequences } from '../../db/statements/id_sequences.ts';
import { refuseUnwatchedTables } from '../../db/watched_tables.ts';
import type { Config } from '../config/config.ts';
import { describeDatabase } from '../database/describe_database.ts';

/**
 * `placement-manage db sync`. Standard output stays empty, as upstream's does; standard error has one line about which database
 * is at which state now.
 */
export async function syncSchema(database: Database, { placementDatabase }: Config): Promise<void> {
  const applied = await migrateToLatest(database);
  await refuseUnwatchedTables(database);
  await raiseSequences(database);
  const name = describeDatabase(placementDatabase);
  const state = `${Object.keys(migrations).at(-1)}, revision ${await readRevision(database)}`;
  const did = applied.length === 0 ? 'nothing had to be migrated' : `applied ${applied.join(', ')}`;
  console.error(`The ${name} is at ${state}: ${did}.`);
}
