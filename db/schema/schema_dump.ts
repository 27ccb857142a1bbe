import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';

/**
 * Writes the schema as SQL that creates it in an empty database: sequences, tables, constraints, indexes, replica identities,
 * functions and triggers, each kind sorted by name. The text is the same on both engines and on every version of PostgreSQL.
 */
export async function dumpSchema(database: Database): Promise<string> {
  const parts = [
    await statements(database, sequences),
    await tables(database),
    await statements(database, sequenceOwners),
    await statements(database, constraints),
    await statements(database, indexes),
    await statements(database, replicaIdentities),
    ['set check_function_bodies = off; -- they may call those behind them'],
    await statements(database, functions),
    await statements(database, triggers),
  ];
  return `${[header, ...parts.flat()].join('\n\n')}\n`;
}

const header =
  '-- The schema of the database, as the migrations make it. Written by "npm run schema"; not to be edited.';

type Statement = { readonly statement: string; readonly rank: number; readonly name: string };

/** Sorted here and not by SQL, since databases may sort by different rules. */
async function statements({ kysely }: Database, query: typeof sequences): Promise<readonly string[]> {
  const { rows } = await query.execute(kysely);
  return rows
    .toSorted((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : 1))
    .map(({ statement }) => `${statement.trimEnd()};`);
}

async function tables({ kysely }: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly table: string; readonly columns: readonly string[]; readonly options: string }>`
    select c.relname as table, coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '') as options, array_agg(
      quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) || coalesce(' collate ' || quote_ident(l.collname), '')
        || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') || case when a.attnotnull then ' not null' else '' end
      order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    left join pg_collation l on l.oid = a.attcollation and l.collname <> 'default'
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace group by c.oid`.execute(kysely);
  return rows
    .toSorted((a, b) => (a.table < b.table ? -1 : 1))
    .map(({ table, columns, options }) => `create table ${table} (\n  ${columns.join(',\n  ')}\n)${options};`);
}

const sequences = sql<Statement>`
  select format('create sequence %I as %s', c.relname, format_type(s.seqtypid, null)) as statement, 0 as rank,
    c.relname::text as name
  from pg_class c join pg_sequence s on s.seqrelid = c.oid where c.relnamespace = 'public'::regnamespace`;

const sequenceOwners = sql<Statement>`
  select format('alter sequence %I owned by %I.%I', c.relname, t.relname, a.attname) as statement, 0 as rank,
    c.relname::text as name
  from pg_class c
  join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'a' and d.refobjsubid > 0
  join pg_class t on t.oid = d.refobjid
  join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
  where c.relkind = 'S' and c.relnamespace = 'public'::regnamespace`;

/** Foreign keys come last, since the keys that they refer to must exist. */
const constraints = sql<Statement>`
  select format('alter table %I add constraint %I %s', t.relname, c.conname, pg_get_constraintdef(c.oid)) as statement,
    (c.contype = 'f')::integer as rank, t.relname || '.' || c.conname as name
  from pg_constraint c join pg_class t on t.oid = c.conrelid
  where c.contype in ('p', 'u', 'c', 'f') and c.connamespace = 'public'::regnamespace`;

const indexes = sql<Statement>`
  select pg_get_indexdef(i.indexrelid) as statement, 0 as rank, c.relname::text as name
  from pg_index i join pg_class c on c.oid = i.indexrelid
  where c.relnamespace = 'public'::regnamespace
    and not exists (select from pg_constraint where conindid = i.indexrelid and contype in ('p', 'u', 'x'))`;

const replicaIdentities = sql<Statement>`
  select format('alter table %I replica identity full', relname) as statement, 0 as rank, relname::text as name
  from pg_class where relreplident = 'f' and relnamespace = 'public'::regnamespace`;

const functions = sql<Statement>`
  select pg_get_functiondef(oid) as statement, 0 as rank, proname::text as name from pg_proc
  where pronamespace = 'public'::regnamespace`;

const triggers = sql<Statement>`
  select pg_get_triggerdef(g.oid) as statement, 0 as rank, t.relname || '.' || g.tgname as name
  from pg_trigger g join pg_class t on t.oid = g.tgrelid
  where not g.tgisinternal and t.relnamespace = 'public'::regnamespace`;
