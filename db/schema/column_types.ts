import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { type ColumnKind, upstreamTables } from './upstream_tables.ts';

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
