import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { type ColumnKind, upstreamTables } from './upstream_tables.ts';

/*
 * What a database must be before it is migrated. Each error has the remedy.
 */

// The schema

/**
 * The schema in which the tables are made: the first one of `search_path` that exists. Several deployments may share a database, each in
 * a separate schema.
 *
 * @throws Error with the remedy if no such schema exists, or if `search_path` also leads to tables in another schema, even behind this one:
 *   where a table of this schema is still to be made, statements would find the table of the other schema.
 */
export async function readCurrentSchema({ kysely }: Pick<Database, 'kysely'>): Promise<string> {
  const { schema, other, path, role } = await onlyRow(
    kysely,
    sql<{ schema: string | null; other: string | null; path: string; role: string }>`
      select current_schema()::text as schema, current_setting('search_path') as path, quote_ident(current_user) as role,
        (select min(quote_ident(nspname)) from pg_class c join pg_namespace n on n.oid = relnamespace
          where relname in ('resource_providers', 'kysely_migration') and nspname = any(current_schemas(false))
            and nspname <> current_schema()) as other`,
  );
  if (schema === null) {
    throw new Error(
      `None of the schemas in the search_path of role ${role} (${path}) exists, or the role may not use them. Create one, such as: ` +
        `create schema placement authorization ${role}; and set it: alter role ${role} set search_path = placement;`,
    );
  }
  if (other !== null) {
    throw new Error(
      `The search_path of role ${role} (${path}) leads to the tables of a Placement in schema ${other}, but new tables would be made in ` +
        `schema ${schema}. Nothing was changed. Name one schema only: alter role ${role} set search_path = ${other}; to use those ` +
        `tables, or ${schema} for a deployment of its own.`,
    );
  }
  return schema;
}

// The types of columns

/** The types of upstream's columns. */
const types: Readonly<Record<ColumnKind, string>> = {
  integer: 'integer',
  ratio: 'double precision',
  text: 'character varying',
  uuid: 'character varying',
  time: 'timestamp without time zone',
};

/**
 * Refuses a database whose columns have other types than upstream's. Programs that move data from MySQL choose bigint,
 * and timestamps with a time zone; the functions of migration 004 do not accept such values.
 *
 * @throws Error with the statements that change the types.
 */
export async function refuseOtherColumnTypes({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  const wanted = upstreamTables.flatMap(({ name: table, columns }) =>
    Object.entries(columns).map(([column, kind]) => ({ table, column, type: types[kind] })),
  );
  const { rows } = await sql<{ statement: string }>`
    select format('alter table %I alter column %I type %s%s;', table_name, column_name, type,
      case data_type when 'timestamp with time zone' then format(' using %I at time zone ''utc''', column_name)
        -- By its digits: 1.1 would become 1.10000002384186.
        when 'real' then format(' using %I::text::double precision', column_name) end) as statement
    from information_schema.columns
    join unnest(${wanted.map(({ table }) => table)}::text[], ${wanted.map(({ column }) => column)}::text[],
      ${wanted.map(({ type }) => type)}::text[]) as w (table_name, column_name, type) using (table_name, column_name)
    where table_schema = current_schema()
      and data_type <> type and not (type = 'character varying' and data_type in ('text', 'character'))
    order by table_name, ordinal_position`.execute(kysely);
  if (rows.length === 0) return;
  throw new Error(
    'The database has columns of other types than those of OpenStack Placement, as some programs that move data from MySQL choose ' +
      'them. Nothing was changed. Change them, and run "placement-manage db sync" again:\n' +
      rows.map(({ statement }) => statement).join('\n'),
  );
}

// The encoding

/** SQL_ASCII, which clusters made without a locale have, stores every byte as it is. */
const storeEverything: readonly string[] = ['UTF8', 'SQL_ASCII'];

/**
 * Refuses a database with an encoding such as LATIN1. A request with a character that it cannot store would fail, and
 * so would all other requests in the same statement.
 *
 * @throws Error with the encoding found and the remedy.
 */
export async function refuseNarrowEncodings({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  const { encoding, role } = await onlyRow(
    kysely,
    sql<{ encoding: string; role: string }>`
      select current_setting('server_encoding') as encoding, quote_ident(current_user) as role`,
  );
  if (storeEverything.includes(encoding)) return;
  // The locale of the server usually belongs to that encoding, and cannot be used with UTF-8. So the new database gets
  // "C".
  const create = `create database placement_utf8 owner ${role} encoding 'UTF8' lc_collate 'C' lc_ctype 'C' template template0;`;
  throw new Error(
    `The database has the encoding ${encoding}, in which not all names can be stored that clients may send. Nothing was changed. ` +
      `Make another one (${create}), move what this one holds there by pg_dump and pg_restore, and set [placement_database] ` +
      'connection to it.',
  );
}
