import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import type { Tables } from '../tables.ts';

/** The tables whose rows get their ids from sequences. */
const numbered: readonly (keyof Tables)[] = [
  'resource_providers',
  'inventories',
  'allocations',
  'consumers',
  'consumer_types',
  'projects',
  'users',
  'resource_classes',
  'traits',
  'placement_aggregates',
  'cells',
];

/**
 * Lets the next id of each table be above those that are there. Logical replication copies rows without their sequences, and so
 * do programs that bring ids along: every insert would fail until the sequence is past them.
 *
 * A sequence is left alone where a row has the highest id of all, behind which there would be none.
 */
export async function raiseSequences({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  const highest = numbered.map(
    (table) => sql`select pg_get_serial_sequence(${sql.lit(table)}, 'id')::regclass as sequence,
      (select max(id) from ${sql.table(table)}) as id`,
  );
  await sql`select setval(sequence, id) from (${sql.join(highest, sql` union all `)}) as highest
    where id > coalesce(pg_sequence_last_value(sequence), 0) and id < 2147483647`.execute(kysely);
}
