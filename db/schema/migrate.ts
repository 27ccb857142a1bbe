import {
  type DialectAdapter,
  type Kysely,
  type Migration,
  type MigrationResultSet,
  Migrator,
  type QueryExecutorProvider,
  sql,
} from 'kysely';
import type { Database } from '../engine/connect.ts';
import { repeatLostRaces } from '../engine/failures.ts';
import type { Tables } from '../tables.ts';
import { analyzeTables } from './analyze_tables.ts';
import { repeatUntilLocked, waitBriefly } from './brief_locks.ts';
import {
  executedMigrations,
  isUnreleased,
  migrationNames,
  newerOf,
  newerSchema,
  unreleasedNames,
} from './executed_migrations.ts';
import { withPrivilegeRemedy } from './privileges.ts';
import { readCurrentSchema, refuseNarrowEncodings, refuseOtherColumnTypes } from './requirements.ts';
import { correctRevision, refuseForeignDatabase } from './revision.ts';

/** The migrations of the release that do what the unreleased ones did. */
const releasedInstead: readonly string[] = ['006_changed_parts', '007_uptime', '008_consumer_terms'];

/**
 * Records the migrations of the release instead of unreleased ones. A database that has run all unreleased ones lacks nothing. A
 * database that has run some gets the migrations of the release, which leave existing parts as they are.
 *
 * One statement, so that all or nothing is recorded; run again, it changes nothing.
 *
 * @param db a connection or a transaction
 */
async function takeInUnreleased(db: QueryExecutorProvider): Promise<void> {
  await sql`
    with taken as (delete from kysely_migration where name = any(${unreleasedNames}::text[]) returning name)
    insert into kysely_migration (name, "timestamp")
    select name, ${new Date().toISOString()} from unnest(${releasedInstead}::text[]) as name
    where (select count(*) from taken) = ${sql.lit(unreleasedNames.length)}`.execute(db);
}

/** Migrations by their names, in order. */
type Migrations = Readonly<Record<string, Migration>>;

/**
 * Migrates the schema to the newest version. Processes that start at the same time wait for each other. A database that
 * upstream's Placement made is adopted (see migration 001); a database of another service is refused.
 *
 * @param others the migrations of another version, which a test may pass
 * @returns the names of the migrations that were run.
 * @throws Error with the remedy if the database belongs to another service or a newer release, has a narrow encoding or
 *   columns of other types, or the role may not change it; otherwise the first error of a migration, which is rolled
 *   back. On PostgreSQL the migrations before it stay.
 */
export function migrateToLatest(database: Database, others?: Migrations): Promise<readonly string[]> {
  return repeatLostRaces(() => withPrivilegeRemedy(database, () => migrate(database, others)));
}

async function migrate(database: Database, others: Migrations | undefined): Promise<readonly string[]> {
  const schema = await readCurrentSchema(database);
  await refuseForeignDatabase(database);
  const executed = await executedMigrations(database);
  // A database that already had one of our migrations is not checked again.
  if (executed.length === 0) {
    await refuseNarrowEncodings(database);
    await refuseOtherColumnTypes(database);
  }
  const names = others === undefined ? migrationNames : Object.keys(others);
  const newer = newerOf(executed, names);
  if (newer.length > 0) throw new Error(newerSchema(newer));
  const applied = names.every((name) => executed.includes(name)) ? [] : await apply(database, schema, executed, others);
  await correctRevision(database.unlimited);
  return applied;
}

/** Runs the migrations that were not executed. @returns their names */
async function apply(
  database: Database,
  schema: string,
  executed: readonly string[],
  others: Migrations | undefined,
): Promise<readonly string[]> {
  // Imported on demand: most starts find nothing to migrate.
  const [{ migrations }, { completeUpstream }] = await Promise.all([
    import('./migrations.ts'),
    import('./migrations/001_placement_schema.ts'),
  ]);
  const all: Migrations = others ?? migrations;
  const takeIn = async (): Promise<void> => {
    if (executed.some((name) => isUnreleased(name) && !(name in all))) await takeInUnreleased(database.unlimited);
  };
  // No other process uses an embedded database.
  if (database.engine === 'embedded') {
    await takeIn();
    return namesOf(await newMigrator(database.unlimited, schema, all).migrateToLatest());
  }
  return database.withMigrationLock(async () => {
    if (executed.length === 0) await completeUpstream(database);
    await takeIn();
    const migrator = newMigrator(database.unlimited, schema, withBriefLocks(all));
    const applied: string[] = [];
    for (;;) {
      const step = await repeatUntilLocked(async () => namesOf(await migrator.migrateUp()));
      if (step.length === 0) break;
      applied.push(...step);
    }
    if (applied.length > 0) await analyzeTables(database.unlimited);
    return applied;
  });
}

/** Each migration is a separate transaction, so that it holds its locks for a short time only. */
const withBriefLocks = (all: Migrations): Migrations =>
  Object.fromEntries(
    Object.entries(all).map(([name, { up }]) => {
      const waiting: Migration = {
        up: async (trx) => {
          await waitBriefly(trx);
          await up(trx);
        },
      };
      return [name, waiting];
    }),
  );

/** The names of the migrations that were run. @throws the error of the first migration that failed */
function namesOf({ error, results = [] }: MigrationResultSet): readonly string[] {
  if (error !== undefined) throw error;
  return results.map(({ migrationName }) => migrationName);
}

/**
 * A migrator without Kysely's own lock. That lock belongs to a session of the server, where a pooler in transaction
 * mode would leave it. It would also wait for our migration lock, since both have the same number.
 *
 * @param schema where Kysely's own tables are; else it would take those in any other schema of the database for them
 */
function newMigrator(db: Kysely<Tables>, schema: string, all: Migrations): Migrator {
  Object.assign(db.getExecutor().adapter, {
    acquireMigrationLock: async () => {},
    releaseMigrationLock: async () => {},
  } satisfies Partial<DialectAdapter>);
  return new Migrator({ db, migrationTableSchema: schema, provider: { getMigrations: async () => ({ ...all }) } });
}
