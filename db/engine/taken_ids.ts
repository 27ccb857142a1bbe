import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';
import { isDatabaseError, NoIdLeft, sqlstate } from './failures.ts';

/** How often a transaction is attempted whose new rows got ids that are taken. */
const attempts = 7;
/** After the first attempt, ids are drawn from a gap of so many free ids; after each further attempt, from a gap four times as wide. */
const firstGap = 64;
/** How many rows are searched for a gap at once, and how many ids are passed at most: 0.2 s, the longest that one attempt may take. */
const [rowsSearched, idsPassed] = [100_000, 1_000_000];

/**
 * Repeats a transaction whose new rows got ids that other rows have already. Sequences wrap around, and other programs insert
 * rows with explicit ids. Before each repetition the sequence is moved behind the taken ids that it returned.
 *
 * @param operation one transaction. After an error nothing of it was done
 * @throws NoIdLeft if the sequence is exhausted, or returns taken ids each time; any other error of the operation
 */
export async function withFreeIds<T>(kysely: Kysely<Tables>, operation: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await operation();
    } catch (error) {
      if (!isDatabaseError(error)) throw error;
      if (error.code === sqlstate.sequenceEnded) throw new NoIdLeft(error.message, { cause: error });
      if (error.code === sqlstate.numberOutOfRange) await refuseLongSequences(kysely, error);
      const taken = error.code === sqlstate.uniqueViolation ? await takenIdOf(kysely, error) : undefined;
      if (taken === undefined) throw error;
      if (attempt === attempts) throw new NoIdLeft(`the ids of table ${taken.table} are taken`, { cause: error });
      await passTakenIds(kysely, taken, firstGap * 4 ** (attempt - 1));
    }
  }
}

/** A table, and the sequence from which its ids come. */
type Numbered = { readonly table: string; readonly sequence: string | null };

/**
 * The table in which an id is taken; undefined if another key is taken. The columns of the index show it, since the names of constraints
 * differ between databases. New resource classes get the id after the largest one, and not an id of their sequence.
 */
async function takenIdOf(
  kysely: Kysely<Tables>,
  { schema, constraint }: { readonly schema?: string; readonly constraint?: string },
): Promise<Numbered | undefined> {
  const { rows } = await sql<Numbered>`
    select t.relname as "table", pg_get_serial_sequence(format('%I.%I', n.nspname, t.relname), 'id') as sequence
    from pg_class k join pg_namespace n on n.oid = k.relnamespace join pg_index i on i.indexrelid = k.oid
    join pg_class t on t.oid = i.indrelid join pg_attribute a on a.attrelid = t.oid and a.attnum = i.indkey[0]
    where n.nspname = ${schema ?? ''}::text and k.relname = ${constraint ?? ''}::text
      and i.indnkeyatts = 1 and a.attname = 'id' and t.relname <> 'resource_classes'`.execute(kysely);
  return rows[0];
}

/**
 * Draws ids until the next ids are free, except ids that other transactions are taking. It only draws ids, and never sets the sequence: so
 * several processes may do this at once.
 */
async function passTakenIds(kysely: Kysely<Tables>, { table, sequence }: Numbered, gap: number): Promise<void> {
  await sql`
    with at as materialized (
      select coalesce(pg_sequence_last_value(seqrelid), seqstart - seqincrement) as last, seqincrement as step
      from pg_sequence where seqrelid = ${sequence}::regclass and seqincrement > 0
    ), present as (
      select last as id from at
      union all (select id from ${sql.table(table)} where id > (select last from at) order by id limit ${sql.lit(rowsSearched)})
    ), follows as (select id, lead(id) over (order by id) as next from present),
    before_gap as (select min(id) as id from follows where next is null or next - id > ${sql.lit(gap)})
    select count(nextval(${sequence}::regclass)) from generate_series(1, (
      select least(${sql.lit(idsPassed)}, (before_gap.id - last + step - 1) / step) from at, before_gap
    ))`.execute(kysely);
}

/** @throws NoIdLeft if a sequence returns numbers that are too large for its column, as sequences from before PostgreSQL 10 do */
async function refuseLongSequences(kysely: Kysely<Tables>, cause: Error): Promise<void> {
  const { rows } = await sql<{ readonly sequence: string }>`
    select d.objid::regclass::text as sequence
    from pg_depend d join pg_sequence s on s.seqrelid = d.objid
    join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    join pg_class t on t.oid = d.refobjid
    where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i')
      and t.relnamespace = quote_ident(current_schema())::regnamespace and a.atttypid = 'integer'::regtype
      and has_sequence_privilege(s.seqrelid, 'usage, select') and pg_sequence_last_value(s.seqrelid) > 2147483647
    limit 1`.execute(kysely);
  if (rows[0] !== undefined) throw new NoIdLeft(`sequence ${rows[0].sequence} has passed 2147483647`, { cause });
}
