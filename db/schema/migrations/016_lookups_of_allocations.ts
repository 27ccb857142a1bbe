import { type Kysely, sql } from 'kysely';

/**
 * Triggers look up the allocations of a consumer by the index of consumers alone. Where a program wrote most of the table and has not
 * committed yet, ANALYZE counts no rows. Any index then seems to be as good, and the one that saves a sort was read from end to end for each
 * consumer: a load of 44,000 allocations took more than 10 minutes. `offset 0` keeps the order out of the lookup.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, lookup, columns] of lookups) {
    const { rows } = await sql<{ readonly definition: string }>`
      select pg_get_functiondef(oid) as definition from pg_proc
      where pronamespace = quote_ident(current_schema())::regnamespace and proname = ${name}`.execute(db);
    for (const { definition } of rows) {
      const fenced = definition.replace(
        lookup,
        (_, table: string) => `from (select ${columns} from ${table} where consumer_id = c.uuid offset 0) as a`,
      );
      if (fenced !== definition) await sql.raw(fenced).execute(db);
    }
  }
}

const lookups: readonly (readonly [name: string, lookup: RegExp, columns: string])[] = [
  [
    'etag_of_allocations',
    /from (\S*allocations) a where a\.consumer_id = c\.uuid/,
    'id, resource_provider_id, resource_class_id, used',
  ],
  [
    'record_allocations_inserted',
    /from (\S*allocations) where consumer_id = c\.uuid(?= group by)/,
    'resource_provider_id, resource_class_id, used',
  ],
];
