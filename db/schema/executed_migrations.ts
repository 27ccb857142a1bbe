import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { noneWithoutTable } from './missing_table.ts';

/**
 * The names of all migrations, in order. They are apart from the migrations, because a process that starts on a database that has them all
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
] as const;

/** Reads the names of all migrations that were run on the database, oldest first. */
export const selectExecuted = sql<{ name: string }>`select name from kysely_migration order by name`;

/** The names of the migrations that are not among those that were run, oldest first. */
export const missingMigrations = (executed: readonly string[]): readonly string[] =>
  migrationNames.filter((name) => !executed.includes(name));

/**
 * The names of all migrations that were run on the database, oldest first, including those of other releases; an empty
 * list if none was run.
 */
export async function executedMigrations({ patient }: Pick<Database, 'patient'>): Promise<readonly string[]> {
  const rows = await noneWithoutTable(
    patient
      .transaction()
      .execute((trx) => selectExecuted.execute(trx))
      .then((result) => result.rows),
  );
  return rows.map(({ name }) => name);
}
