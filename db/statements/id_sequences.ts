import { type RawBuilder, sql } from 'kysely';
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

const ofEach = (query: (table: keyof Tables, sequence: RawBuilder<unknown>) => RawBuilder<unknown>) =>
  sql.join(
    numbered.map((table) => query(table, sql`pg_get_serial_sequence(${sql.lit(table)}, 'id')::regclass`)),
    sql` union all `,
  );

/** The ids are integers: there are 2^31 - 1 of them, unless an operator lets the sequence begin below 0. Three quarters are many. */
const many = sql.lit(1_610_612_736);

/**
 * Lets the next id of each table be above those that are there. Logical replication copies rows without their sequences, and so
 * do programs that bring ids along: every insert would fail until the sequence is past them.
 *
 * Where ids are running out it is left alone: it may have been let begin anew on purpose.
 */
export async function raiseSequences({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  const highest = ofEach(
    (table, sequence) => sql`select ${sequence} as sequence, (select max(id) from ${sql.table(table)}) as id`,
  );
  await sql`select setval(sequence, id) from (${highest}) as highest
    where id > coalesce(pg_sequence_last_value(sequence), 0) and id < ${many}`.execute(kysely);
}

/** A table that is running out of ids. */
export type SpentIds = { readonly table: string; readonly sequence: string; readonly last: number };

/** The tables that have used up three quarters of their ids. */
export async function readSpentIds({ kysely }: Pick<Database, 'kysely'>): Promise<readonly SpentIds[]> {
  const sequences = ofEach((table, sequence) => sql`select ${sql.lit(table)} as "table", ${sequence} as sequence`);
  const { rows } = await sql<SpentIds>`
    select "table", sequence::text, pg_sequence_last_value(sequence)::float8 as last from (${sequences}) as s
    where pg_sequence_last_value(sequence) >= ${many}`.execute(kysely);
  return rows;
}
