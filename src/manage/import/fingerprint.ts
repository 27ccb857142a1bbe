import { type RawBuilder, sql } from 'kysely';
import type { ColumnKind, CopiedTable } from './copied_tables.ts';
import { type RowKey, upTo } from './key_order.ts';
import type { Source } from './source.ts';
import type { SourceTable } from './source_schema.ts';
import type { Target } from './target.ts';

/**
 * The number of rows, and the sum of 32 bits of each row's MD5. Two tables with the same values have the same
 * fingerprint.
 */
export type Fingerprint = { readonly count: number; readonly sum: string };

/** @param last only rows up to this key are counted; if it is undefined, all rows */
export async function fingerprintSource(
  source: Source,
  { table, exists, expressions }: SourceTable,
  last?: RowKey,
): Promise<Fingerprint> {
  if (!exists) return { count: 0, sum: '0' };
  const values = Object.values(table.columns).map((kind, place) => {
    const value = expressions[place] ?? 'null';
    return `coalesce(${kind === 'ratio' ? thousandths.mysql(value) : value}, '~')`;
  });
  const digest = `conv(left(md5(concat_ws('|', ${values.join(', ')})), 8), 16, 10)`;
  const { condition, values: parameters } = upTo(table.key, last);
  const [row] = await source.query(
    `select count(*), coalesce(sum(cast(${digest} as unsigned)), 0) from ${table.name} t where ${condition}`,
    parameters,
  );
  return { count: Number(row?.[0]), sum: row?.[1] ?? '0' };
}

/** The fingerprint of all rows in the target. */
export async function fingerprintTarget({ kysely }: Target, table: CopiedTable): Promise<Fingerprint> {
  const values = Object.entries(table.columns).map(
    ([column, kind]) => sql`coalesce(${inTarget[kind](sql.ref(`t.${column}`))}, '~')`,
  );
  const { rows } = await sql<Fingerprint>`
    select count(*)::integer as count, coalesce(sum(
      ('x' || left(md5(convert_to(concat_ws('|', ${sql.join(values)}), 'UTF8')), 8))::bit(32)::bigint), 0)::text as sum
    from ${sql.table(table.name)} t`.execute(kysely);
  return rows[0] ?? { count: 0, sum: '0' };
}

/** The two databases print fractions differently, but integers the same. No meaningful ratio is above 1e9. */
const thousandths = {
  mysql: (value: string): string => `cast(floor(least(${value} + 0, 1e9) * 1000) as signed)`,
  postgresql: (column: RawBuilder<unknown>) => sql`floor(least(${column}, 1e9) * 1000)::bigint::text`,
};

const inTarget: Readonly<Record<ColumnKind, (column: RawBuilder<unknown>) => RawBuilder<unknown>>> = {
  integer: (column) => sql`${column}::text`,
  text: (column) => column,
  uuid: (column) => column,
  ratio: thousandths.postgresql,
  time: (column) => sql`to_char(${column}, 'YYYY-MM-DD HH24:MI:SS.US')`,
};
