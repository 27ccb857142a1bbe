import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { SchemaBehind } from '../engine/failures.ts';
import type { Tables } from '../tables.ts';
import { noneWithoutTable } from './missing_table.ts';

/**
 * The names of all migrations, in order. They are in a separate file, because a process that starts on a database that has them all
 * needs nothing but their names.
 */
export const migrationNames = [
  '001_placement_schema',
  '002_change_log',
  '003_services',
  '004_entity_tags',
  '005_brought_tags',
  '006_changed_parts',
  '007_uptime',
  '008_consumer_terms',
  '009_tokens',
  '010_limits',
  '011_waiting',
  '012_consumer_names',
  '013_changed_consumers',
  '014_usage_history',
  '015_replica_identities',
  '016_lookups_of_allocations',
  '017_no_compilation',
  '018_deletions_without_record',
  '019_usages_of_records',
  '020_owners_of_waiting',
  '021_tags_under_locks',
] as const;

/** The names of migrations that development had between 0.1.0 and 0.2.0. The migrations of 0.2.0 do the same. */
export const unreleasedNames: readonly string[] = [
  '006_inventory_changes',
  '007_service_uptime',
  '008_consumer_indexes',
  '009_relied_changes',
  '010_changed_parts',
  '011_consumer_terms',
  '012_no_consumer_indexes',
  '013_terms_gone_together',
  '014_raised_by_claims',
  '015_gone_providers',
  '016_former_consumers',
  '017_qualified_names',
];

/** Whether a migration with this name was never released. */
export const isUnreleased = (name: string): boolean => unreleasedNames.includes(name);

/** Reads the names of all migrations that were run on the database, oldest first. */
const selectExecuted = sql<{ name: string }>`select name from kysely_migration order by name`;

/** The names of the migrations that were not run, oldest first. */
const missingMigrations = (executed: readonly string[]): readonly string[] =>
  migrationNames.filter((name) => !executed.includes(name));

/**
 * The names of all migrations that were run on the database, oldest first, including those of other releases; an empty
 * list if none was run.
 */
export async function executedMigrations({ unlimited }: Pick<Database, 'unlimited'>): Promise<readonly string[]> {
  const rows = await noneWithoutTable(
    unlimited
      .transaction()
      .execute((trx) => selectExecuted.execute(trx))
      .then((result) => result.rows),
  );
  return rows.map(({ name }) => name);
}

/** The names of the migrations that the database still lacks, oldest first. */
export async function pendingMigrations(database: Database): Promise<readonly string[]> {
  return missingMigrations(await executedMigrations(database));
}

/** The executed migrations that are neither in a list of names nor in `unreleasedNames`. */
export const newerOf = (executed: readonly string[], names: readonly string[]): readonly string[] =>
  executed.filter((name) => !names.includes(name) && !isUnreleased(name));

/** The names of the migrations that were run on the database and that this release does not know, oldest first. */
export async function newerMigrations(database: Database): Promise<readonly string[]> {
  return newerOf(await executedMigrations(database), migrationNames);
}

/** The message for a database that lacks migrations, with the remedy. */
export const olderSchema = (pending: readonly string[]): string =>
  `The database lacks the migrations ${pending.join(', ')}. Run "placement-manage db sync", or set [placement_database] ` +
  'sync_on_startup = true.';

/** The message for a database of a newer release, with the remedy. */
export const newerSchema = (newer: readonly string[]): string =>
  `The database is of a newer release of this service, which brought the migrations ${newer.join(', ')}. Use that release, or ` +
  'go back to the backup that was made before the upgrade: no migration is undone.';

/** All tables but `alembic_version`, which only commands read. */
const needed = {
  resource_providers: true,
  inventories: true,
  allocations: true,
  consumers: true,
  consumer_types: true,
  projects: true,
  users: true,
  resource_classes: true,
  traits: true,
  resource_provider_traits: true,
  placement_aggregates: true,
  resource_provider_aggregates: true,
  resource_provider_etags: true,
  provider_changes: true,
  inventory_changes: true,
  provider_changes_horizon: true,
  consumer_terms: true,
  consumer_names: true,
  former_consumers: true,
  cells: true,
  services: true,
  tokens: true,
  limits: true,
  deleted_limits: true,
  usage_counting: true,
  project_usages: true,
  doubtful_usages: true,
  waiting: true,
  waiting_processes: true,
  usage_history: true,
  open_usage_records: true,
  usage_records: true,
} as const satisfies Record<Exclude<keyof Tables, 'alembic_version'>, true>;

/** The names of the tables that the service needs. */
export const neededTables: readonly string[] = Object.keys(needed);

const selectMissing = sql<{
  name: string;
}>`select name from unnest(${neededTables}::text[]) as name where to_regclass(name) is null`;

/**
 * Makes sure that the database takes writes, and still has the schema with which the service started. The first statement is refused where
 * a write would be, and locks no row.
 *
 * @throws `readOnlyTransaction` where it takes no writes, `insufficientPrivilege` where the role may not write, `SchemaBehind` where tables
 *   are gone or an older dump was restored, and any error of a database that cannot be reached
 */
export async function requireUsable({ transaction }: Pick<Database, 'transaction'>): Promise<void> {
  const [, missing, executed] = await transaction([
    sql`select from provider_changes where false for update`,
    selectMissing,
    selectExecuted,
  ]);
  if (missing.length > 0)
    throw new SchemaBehind(`The database lacks the tables ${missing.map(({ name }) => name).join(', ')}.`);
  const pending = missingMigrations(executed.map(({ name }) => name));
  if (pending.length > 0) throw new SchemaBehind(olderSchema(pending));
}
