import { type Migration, Migrator } from 'kysely';
import type { Database } from './connect.ts';
import { repeatLostRaces } from './lost_race.ts';
import * as placementSchema from './migrations/001_placement_schema.ts';
import * as changeLog from './migrations/002_change_log.ts';
import * as services from './migrations/003_services.ts';
import * as entityTags from './migrations/004_entity_tags.ts';

/** All migrations in order. They are imported, not read from a folder, so that the published package carries them. */
export const migrations: Readonly<Record<string, Migration>> = {
  '001_placement_schema': placementSchema,
  '002_change_log': changeLog,
  '003_services': services,
  '004_entity_tags': entityTags,
};

const migrator = (database: Database, all: typeof migrations) =>
  new Migrator({ db: database.patient, provider: { getMigrations: async () => ({ ...all }) } });

/**
 * Brings the schema to the newest version. Kysely's Migrator takes an advisory lock, so concurrent starters wait for each
 * other. A database that upstream's Placement made is adopted: see migration 001.
 *
 * @param all the migrations, in a test those of another version
 * @throws the first error of a migration; nothing of that migration is kept.
 */
export function migrateToLatest(database: Database, all = migrations): Promise<void> {
  return repeatLostRaces(async () => {
    const { error } = await migrator(database, all).migrateToLatest();
    if (error !== undefined) throw error;
  });
}

/** The names of the migrations that the database still lacks, oldest first. */
export async function pendingMigrations(database: Database): Promise<readonly string[]> {
  const all = await migrator(database, migrations).getMigrations();
  return all.filter((migration) => migration.executedAt === undefined).map((migration) => migration.name);
}
