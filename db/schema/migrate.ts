import { type DialectAdapter, type Kysely, type Migration, Migrator, type QueryExecutorProvider } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { refuseNarrowEncodings } from '../engine/encoding.ts';
import { repeatLostRaces } from '../engine/lost_race.ts';
import { changePatiently } from './brief_locks.ts';
import { refuseOtherColumnTypes } from './column_types.ts';
import { addColumnsAhead } from './columns_ahead.ts';
import { executedMigrations } from './executed_migrations.ts';
import * as placementSchema from './migrations/001_placement_schema.ts';
import * as changeLog from './migrations/002_change_log.ts';
import * as services from './migrations/003_services.ts';
import * as entityTags from './migrations/004_entity_tags.ts';
import * as broughtTags from './migrations/005_brought_tags.ts';
import * as inventoryChanges from './migrations/006_inventory_changes.ts';
import * as serviceUptime from './migrations/007_service_uptime.ts';
import * as consumerIndexes from './migrations/008_consumer_indexes.ts';
import * as reliedChanges from './migrations/009_relied_changes.ts';
import * as changedParts from './migrations/010_changed_parts.ts';
import * as consumerTerms from './migrations/011_consumer_terms.ts';
import * as noConsumerIndexes from './migrations/012_no_consumer_indexes.ts';
import { withPrivilegeRemedy } from './privileges.ts';
import { correctRevision, refuseForeignDatabase } from './revision.ts';
import type { Tables } from './tables.ts';

/** All migrations in order. They are imported, not read from a folder, so that the published package contains them. */
export const migrations: Readonly<Record<string, Migration>> = {
  '001_placement_schema': placementSchema,
  '002_change_log': changeLog,
  '003_services': services,
  '004_entity_tags': entityTags,
  '005_brought_tags': broughtTags,
  '006_inventory_changes': inventoryChanges,
  '007_service_uptime': serviceUptime,
  '008_consumer_indexes': consumerIndexes,
  '009_relied_changes': reliedChanges,
  '010_changed_parts': changedParts,
  '011_consumer_terms': consumerTerms,
  '012_no_consumer_indexes': noConsumerIndexes,
};

/** Changes of tables into which every request writes. They are made before the migrations begin. */
const changesOf = Object.entries({
  '010_changed_parts': (db: QueryExecutorProvider) => addColumnsAhead(db, changedParts.changedParts),
  '011_consumer_terms': consumerTerms.addTermsAhead,
});

/**
 * Brings the schema to the newest version. Processes that start at the same time wait for each other. A database that
 * upstream's Placement made is adopted (see migration 001); a database of another service is refused.
 *
 * @param all the migrations; a test may pass those of another version
 * @returns the names of the migrations that were run.
 * @throws Error with the remedy if the database belongs to another service or a newer release, has a narrow encoding or
 *   columns of other types, or the role may not change it; otherwise the first error of a migration, which is rolled
 *   back.
 */
export function migrateToLatest(database: Database, all = migrations): Promise<readonly string[]> {
  return repeatLostRaces(() => withPrivilegeRemedy(database, () => migrate(database, all)));
}

async function migrate(database: Database, all: typeof migrations): Promise<readonly string[]> {
  await refuseForeignDatabase(database);
  const executed = await executedMigrations(database);
  // A database that already had one of our migrations is not checked again.
  if (executed.length === 0) {
    await refuseNarrowEncodings(database);
    await refuseOtherColumnTypes(database);
  }
  const newer = await newerMigrations(database, all);
  if (newer.length > 0) throw new Error(newerSchema(newer));
  for (const [name, change] of changesOf) {
    const isWanted = all[name] !== undefined && !executed.includes(name);
    if (isWanted && database.engine === 'postgresql') await changePatiently(database, change);
  }
  const migrator = newMigrator(database.patient, all);
  const { error, results = [] } = await database.withMigrationLock(() => migrator.migrateToLatest());
  if (error !== undefined) throw error;
  await correctRevision(database.patient);
  return results.map(({ migrationName }) => migrationName);
}

/**
 * A migrator without Kysely's own lock. That lock belongs to a session of the server, where a pooler in transaction
 * mode would leave it. It would also wait for our migration lock, since both have the same number.
 */
function newMigrator(db: Kysely<Tables>, all: typeof migrations): Migrator {
  Object.assign(db.getExecutor().adapter, {
    acquireMigrationLock: async () => {},
    releaseMigrationLock: async () => {},
  } satisfies Partial<DialectAdapter>);
  return new Migrator({ db, provider: { getMigrations: async () => ({ ...all }) } });
}

/** The names of the migrations that the database still lacks, oldest first. */
export async function pendingMigrations(database: Database): Promise<readonly string[]> {
  const executed = await executedMigrations(database);
  return Object.keys(migrations).filter((name) => !executed.includes(name));
}

/** The names of the migrations that were run on the database and that this release does not know, oldest first. */
export async function newerMigrations(database: Database, all = migrations): Promise<readonly string[]> {
  return (await executedMigrations(database)).filter((name) => all[name] === undefined);
}

/** The message for a database that lacks migrations, with the remedy. */
export const olderSchema = (pending: readonly string[]): string =>
  `The database lacks the migrations ${pending.join(', ')}. Run "placement-manage db sync", or set [placement_database] ` +
  'sync_on_startup = true.';

/** The message for a database of a newer release, with the remedy. */
export const newerSchema = (newer: readonly string[]): string =>
  `The database is of a newer release of this service, which brought the migrations ${newer.join(', ')}. Use that release, or ` +
  'go back to the backup that was made before the upgrade: no migration is undone.';
