import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../engine/failures.ts';
import type { Tables } from '../tables.ts';

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

/**
 * Records of usages get their ids when they begin, and keep them in another table when they end. Of what has ended, which may be very much,
 * the newest record is enough: an older record is in no page with a new one.
 */
const highestRecord = sql`select pg_get_serial_sequence('open_usage_records', 'id')::regclass, greatest(
    (select max(id) from (select id from usage_records order by ended_at desc limit 10000) as newest),
    (select max(id) from open_usage_records)
  )`;

/** The last value of a sequence; null if it was never used, or the role may not read it. */
const last = sql`case when has_sequence_privilege(sequence, 'usage, select') then pg_sequence_last_value(sequence) end`;

/** Three quarters of all ids: ids are integers up to 2^31 - 1, unless an operator lets the sequence begin below 0. */
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
  const behind = sql`from (${highest} union all ${highestRecord}) as highest
    join pg_sequence on seqrelid = sequence and seqmin > 0
    where has_sequence_privilege(sequence, 'usage, select') and id > coalesce(${last}, 0)
      and (id < ${many} or seqtypid = 'bigint'::regtype)`;
  // If the role may not read a table, this throws. So what is refused below is to raise a sequence.
  if ((await sql`select ${behind}`.execute(kysely)).rows.length === 0) return;
  try {
    await sql`select setval(sequence, id) ${behind}`.execute(kysely);
  } catch (error) {
    if (!(error instanceof Error) || !hasSqlstate(error, sqlstate.insufficientPrivilege)) throw error;
    throw new Error(
      'Rows were copied without their sequences, so that new ones would get ids that are taken, and the role may not raise ' +
        `these: ${error.message}. Run "placement-manage db sync" as the role that owns the tables.`,
      { cause: error },
    );
  }
}

/** How far the ids of a table are used. */
export type IdUse = {
  readonly table: string;
  readonly sequence: string;
  /** The newest id. */
  readonly last: number;
  /** The last id that the sequence can return, or the column can store. */
  readonly end: number;
  /** Which part of the ids is used: 0 to 1. Where the sequence begins again at its end, the part that rows have. */
  readonly used: number;
  /** Whether the sequence wraps around; taken ids are skipped (db/engine/taken_ids.ts). */
  readonly wraps: boolean;
};

/**
 * Reads how far the ids of each table are used, from the catalog alone. A sequence that was never used, or that the role may not read,
 * is left out.
 */
export async function readIdUse({ kysely }: Pick<Database, 'kysely'>): Promise<readonly IdUse[]> {
  const sequences = ofEach(
    (table, sequence) =>
      sql`select ${sql.lit(table)} as "table", ${sequence} as sequence, ${sql.lit(table)}::regclass as relation`,
  );
  const { rows } = await sql<IdUse>`
    with numbered as (
      select s.*, ${last}::float8 as last, seqincrement > 0 as rises, c.reltuples, seqcycle and seqmax <= highest as "wraps",
        greatest(seqmin::float8, -highest - 1) as lowest, least(seqmax::float8, highest) as highest
      from (${sequences}) as s join pg_sequence on seqrelid = sequence join pg_class c on c.oid = relation
        join pg_attribute a on a.attrelid = relation and a.attname = 'id'
        cross join lateral (select case a.atttypid when 'integer'::regtype then 2147483647 else 9223372036854775807 end::float8) as h (highest)
    )
    select "table", sequence::text, last, case when rises then highest else lowest end as "end", "wraps",
      least(1, greatest(0, case when "wraps" then reltuples when rises then last - lowest + 1 else highest - last + 1 end
        / (highest - lowest + 1))) as used
    from numbered where last is not null order by "table"`.execute(kysely);
  return rows;
}

/** Above this part of used ids, the ids of a table count as running out. */
const muchUsed = 0.75;

/**
 * The problem of the ids of a table, and the statement that corrects it while the service serves; undefined without a problem.
 *
 * @param limit how much of the ids may be used: 0 to 1
 */
export function idProblem({ table, sequence, last, end, used, wraps }: IdUse, limit = muchUsed): string | undefined {
  const share = `${Math.floor(used * 100)} %`;
  if (wraps) {
    return used < limit ? undefined : `The rows of table ${table} have ${share} of all ids: remove some of them.`;
  }
  if (used < limit && last >= 0) return undefined;
  const how = last < 0 ? 'goes on below zero' : 'is running out of ids';
  // A sequence from before PostgreSQL 10 may have passed the end of its column.
  const restart = last > highestInteger ? ` restart with ${lowestInteger}` : '';
  return (
    `Table ${table} ${how}: it has used ${share} of them, up to ${last} of ${end}; after that no row can be added to it. With ` +
    `this statement, also while the service serves, the ids begin again at the lowest number, without those that rows have: ` +
    `alter sequence ${sequence} minvalue ${lowestInteger} maxvalue ${highestInteger} cycle${restart};`
  );
}

/** The range of PostgreSQL's integer. */
const [lowestInteger, highestInteger] = [-2_147_483_648, 2_147_483_647];
