import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../engine/sqlstate.ts';
import type { Tables } from './tables.ts';

/**
 * The tables whose rows get their ids from sequences. Resource classes have a sequence as well, but are inserted with
 * ids.
 */
const numbered: readonly (keyof Tables)[] = [
  'resource_providers',
  'inventories',
  'allocations',
  'consumers',
  'consumer_types',
  'projects',
  'users',
  'traits',
  'placement_aggregates',
  'cells',
];

const ofEach = (query: (table: keyof Tables, sequence: RawBuilder<unknown>) => RawBuilder<unknown>) =>
  sql.join(
    numbered.map((table) => query(table, sql`pg_get_serial_sequence(${sql.lit(table)}, 'id')::regclass`)),
    sql` union all `,
  );

/** The last value of a sequence; null if it was never used, or the role may not read it. */
const last = sql`case when has_sequence_privilege(sequence, 'usage, select') then pg_sequence_last_value(sequence) end`;

/** Three quarters of all ids: these are integers up to 2^31 - 1, unless an operator lets the sequence begin below 0. */
const many = sql.lit(1_610_612_736);

/**
 * Raises each sequence above the highest id in its table. Logical replication copies rows without their sequences, and
 * so do programs that insert rows with ids: every insert would fail until the sequence is above these ids.
 *
 * A sequence is left as it is if its table is running out of ids, or if it goes below 0: then an operator may have
 * restarted it on purpose.
 *
 * @throws Error with the remedy if the role may not do so, such as a role that may only read and write rows.
 */
export async function raiseSequences({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  const highest = ofEach(
    (table, sequence) => sql`select ${sequence} as sequence, (select max(id) from ${sql.table(table)}) as id`,
  );
  try {
    await sql`select setval(sequence, id) from (${highest}) as highest
      join pg_sequence on seqrelid = sequence and seqmin > 0
      where has_sequence_privilege(sequence, 'usage, select') and id > coalesce(${last}, 0) and id < ${many}`.execute(
      kysely,
    );
  } catch (error) {
    if (!(error instanceof Error) || !hasSqlstate(error, sqlstate.insufficientPrivilege)) throw error;
    if (!/ sequence /.test(error.message)) throw error; // the role may not read a table
    throw new Error(
      'Rows were copied without their sequences, so that new ones would get ids that are taken, and the role may not raise ' +
        `these: ${error.message}. Run "placement-manage db sync" as the role that owns the tables.`,
      { cause: error },
    );
  }
}

/** A table that is running out of ids. */
export type SpentIds = { readonly table: string; readonly sequence: string; readonly last: number };

/** The tables that have used up three quarters of their ids. */
export async function readSpentIds({ kysely }: Pick<Database, 'kysely'>): Promise<readonly SpentIds[]> {
  const sequences = ofEach((table, sequence) => sql`select ${sql.lit(table)} as "table", ${sequence} as sequence`);
  const { rows } = await sql<SpentIds>`
    select "table", sequence::text, ${last}::float8 as last from (${sequences}) as s
    where ${last} >= ${many}`.execute(kysely);
  return rows;
}
