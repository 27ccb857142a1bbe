import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';

/** Upstream's tables, and the names of their columns by type. A name has the same type in every table. */
const tables = (
  'allocations consumer_types consumers inventories placement_aggregates projects resource_classes ' +
  'resource_provider_aggregates resource_provider_traits resource_providers traits users'
).split(' ');
const columns: Readonly<Record<string, string>> = {
  integer:
    'id resource_provider_id resource_class_id used project_id user_id consumer_type_id generation root_provider_id ' +
    'parent_provider_id trait_id aggregate_id total reserved min_unit max_unit step_size',
  'double precision': 'allocation_ratio',
  'character varying': 'uuid consumer_id name external_id',
  'timestamp without time zone': 'created_at updated_at',
};

/**
 * Refuses a database whose columns have other types than upstream's. Programs that move data from MySQL choose bigint,
 * and timestamps with a time zone; the functions of migration 004 do not accept such values.
 *
 * @throws Error with the statements that change the types.
 */
export async function refuseOtherColumnTypes({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  const wanted = Object.entries(columns).flatMap(([type, names]) => names.split(' ').map((name) => ({ name, type })));
  const { rows } = await sql<{ statement: string }>`
    select format('alter table %I alter column %I type %s%s;', table_name, column_name, type,
      case data_type when 'timestamp with time zone' then format(' using %I at time zone ''utc''', column_name)
        -- By its digits: 1.1 would become 1.10000002384186.
        when 'real' then format(' using %I::text::double precision', column_name) end) as statement
    from information_schema.columns
    join unnest(${wanted.map(({ name }) => name)}::text[], ${wanted.map(({ type }) => type)}::text[]) as w (name, type)
      on name = column_name
    where to_regclass('resource_providers') is not null and table_schema = current_schema()
      and table_name = any(${tables}::text[])
      and data_type <> type and not (type = 'character varying' and data_type in ('text', 'character'))
    order by table_name, ordinal_position`.execute(kysely);
  if (rows.length === 0) return;
  throw new Error(
    'The database has columns of other types than those of OpenStack Placement, as some programs that move data from MySQL choose ' +
      'them. Nothing was changed. Change them, and run "placement-manage db sync" again:\n' +
      rows.map(({ statement }) => statement).join('\n'),
  );
}
