import { type Migration, Migrator } from 'kysely';
import { refuseOtherColumnTypes } from './column_types.ts';
import type { Database } from './connect.ts';
import { refuseNarrowEncodings } from './encoding.ts';
import { executedMigrations } from './executed_migrations.ts';
import { repeatLostRaces } from './lost_race.ts';
import * as placementSchema from './migrations/001_placement_schema.ts';
import * as changeLog from './migrations/002_change_log.ts';
import * as services from './migrations/003_services.ts';
import * as entityTags from './migrations/004_entity_tags.ts';
import * as broughtTags from './migrations/005_brought_tags.ts';
import { withPrivilegeRemedy } from './privileges.ts';
import { correctRevision, refuseForeignDatabase } from './revision.ts';

/** All migrations in order. They are imported, not read from a folder, so that the published package carries them. */
export const migrations: Readonly<Record<string, Migration>> = {
  '001_placement_schema': placementSchema,
  '002_change_log': changeLog,
  '003_services': services,
  '004_entity_tags': entityTags,
  '005_brought_tags': broughtTags,
};

/**
 * Brings the schema to the newest version. Kysely's Migrator takes an advisory lock, so concurrent starters wait for each
 * other. A database that upstream's Placement made is adopted (see migration 001), one of another service refused.
 *
 * @param all the migrations, in a test those of another version
 * @returns the names of those that were needed.
 * @throws Error with the remedy where the database is another service's, of a newer release, of a narrow encoding or with columns
 *   of other types, or the role may not change it; else the first error of a migration. Nothing of that migration is kept.
 */
export function migrateToLatest(database: Database, all = migrations): Promise<readonly string[]> {
  return repeatLostRaces(() => withPrivilegeRemedy(database, () => migrate(database, all)));
}

async function migrate(database: Database, all: typeof migrations): Promise<readonly string[]> {
  await refuseForeignDatabase(database);
  // What has had a migration of ours is served as it is.
  if ((await executedMigrations(database)).length === 0) {
    await refuseNarrowEncodings(database);
    await refuseOtherColumnTypes(database);
  }
  const newer = await newerMigrations(database, all);
  if (newer.length > 0) throw new Error(newerSchema(newer));
  const migrator = new Migrator({ db: database.patient, provider: { getMigrations: async () => ({ ...all }) } });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
  await correctRevision(database);
  return results.map(({ migrationName }) => migrationName);
}

/** The names of the migrations that the database still lacks, oldest first. */
export async function pendingMigrations(database: Database): Promise<readonly string[]> {
  const executed = await executedMigrations(database);
  return Object.keys(migrations).filter((name) => !executed.includes(name));
}

/** The names of the migrations that the database has had and this release does not know, oldest first. */
export async function newerMigrations(database: Database, all = migrations): Promise<readonly string[]> {
  return (await executedMigrations(database)).filter((name) => all[name] === undefined);
}

/** That the database needs migrations, and what to do. */
export const olderSchema = (pending: readonly string[]): string =>
  `The database lacks the migrations ${pending.join(', ')}. Run "placement-manage db sync", or set [placement_database] ` +
  'sync_on_startup = true.';

/** That the database is of a newer release, and what to do. */
export const newerSchema = (newer: readonly string[]): string =>
  `The database is of a newer release of this service, which brought the migrations ${newer.join(', ')}. Use that release, or ` +
  'go back to the backup that was made before the upgrade: no migration is undone.';
