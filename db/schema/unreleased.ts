import { type QueryExecutorProvider, sql } from 'kysely';

/** The names of migrations that development had between 0.1.0 and 0.2.0. Those of the release do the same. */
const names: readonly string[] = [
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

/** The migrations of the release that do what those did. */
const successors: readonly string[] = ['006_changed_parts', '007_uptime', '008_consumer_terms'];

/** Whether it is the name of a migration that was never released. */
export const isUnreleased = (name: string): boolean => names.includes(name);

/**
 * Records the migrations of the release in place of those that were never released. A database that has run them all lacks nothing. One
 * that has run some gets the migrations of the release, which leave alone what is there.
 *
 * One statement, so that it is done wholly or not at all; done again, it changes nothing.
 *
 * @param db a connection or a transaction
 */
export async function takeInUnreleased(db: QueryExecutorProvider): Promise<void> {
  await sql`
    with taken as (delete from kysely_migration where name = any(${names}::text[]) returning name)
    insert into kysely_migration (name, "timestamp") select name, ${new Date().toISOString()} from unnest(${successors}::text[]) as name
    where (select count(*) from taken) = ${sql.lit(names.length)}`.execute(db);
}
