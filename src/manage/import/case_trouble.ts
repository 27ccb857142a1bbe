import { type BadData, rowsOf } from './bad_data.ts';
import { type CopiedTable, copiedTables } from './copied_tables.ts';
import type { Source, SourceRow } from './source.ts';
import { text } from './source_columns.ts';
import type { SourceSchema } from './source_schema.ts';

/** Texts of which clients know one spelling, and MySQL mostly finds any. */
const names: readonly (readonly [table: CopiedTable['name'], column: string])[] = [
  ['resource_providers', 'name'],
  ['projects', 'external_id'],
  ['users', 'external_id'],
];

const uuids = copiedTables.flatMap(({ name, columns }) =>
  Object.keys(columns).flatMap((column) => (columns[column] === 'uuid' ? [[name, column] as const] : [])),
);

const inSmallLetters = (column: string): string => `lower(${text(`t.${column}`)})`;

/**
 * Finds what changes because PostgreSQL compares texts with their case, and most databases of MySQL do not. UUIDs are copied in small
 * letters, names as they are.
 */
export async function findCaseTrouble(source: Source, { has, tellsCase }: SourceSchema): Promise<BadData> {
  const problems: string[] = [];
  const warnings: string[] = [];
  const isThere = ([table, column]: readonly [string, string]): boolean => has(table, column);
  for (const [table, column] of uuids.filter(isThere)) {
    // Allocations have the UUID of their consumer many times.
    const isApart = column === 'consumer_id' ? `count(distinct t.${column}) > 1` : 'count(*) > 1';
    const alike = tellsCase(table, column) ? await findAlike(source, table, column, isApart) : undefined;
    if (alike !== undefined) problems.push(`${alike}, and this service takes them for one. ${mend}`);
    const capitals = await findCapitals(source, table, column);
    if (capitals !== undefined) warnings.push(`${capitals}. They are copied in small letters.`);
  }
  if (tellsCase('consumers', 'uuid') || tellsCase('allocations', 'consumer_id')) {
    problems.push(...(await findStrangers(source)));
  }
  for (const [table, column] of names.filter(isThere)) {
    const found = tellsCase(table, column)
      ? await findAlike(source, table, column, 'count(*) > 1')
      : await findCapitals(source, table, column);
    if (found === undefined) continue;
    warnings.push(
      tellsCase(table, column)
        ? `${found}. They are copied as they are.`
        : `${found}. MySQL finds them in any spelling, this service only in that one.`,
    );
  }
  return { problems, warnings };
}

const mend = 'Mend the source: delete all but one of them by OpenStack Placement.';

/** Values that differ from others only by case. */
async function findAlike(source: Source, table: string, column: string, having: string): Promise<string | undefined> {
  const [row] = await source.query(
    `select count(*), min(small) from (select ${inSmallLetters(column)} as small from ${table} t group by small having ${having}) ` +
      'as alike',
  );
  return isNone(row)
    ? undefined
    : `${table}: several values of ${column} differ only by upper and lower case (such as ${row?.[1]})`;
}

/** Values with capital letters. */
async function findCapitals(source: Source, table: string, column: string): Promise<string | undefined> {
  const [row] = await source.query(
    `select count(*), min(${text(`t.${column}`)}) from ${table} t ` +
      `where cast(${text(`t.${column}`)} as binary) <> cast(${inSmallLetters(column)} as binary)`,
  );
  return isNone(row) ? undefined : `${rowsOf(table, row)} capital letters in ${column} (such as ${row?.[1]})`;
}

/** Allocations whose consumer has no record, only one in another spelling, which the source takes for another consumer. */
async function findStrangers(source: Source): Promise<readonly string[]> {
  const [row] = await source.query(
    `select count(*), min(small) from (select small from (select ${inSmallLetters('uuid')} as small from consumers t
      union all select distinct ${inSmallLetters('consumer_id')} from allocations t left join consumers c on c.uuid = t.consumer_id
      where c.uuid is null) as each_one group by small having count(*) > 1) as alike`,
  );
  if (isNone(row)) return [];
  return [
    `allocations: consumers without a record differ from others only by upper and lower case (such as ${row?.[1]}), and this service ` +
      `takes them for one. ${mend}`,
  ];
}

const isNone = (row: SourceRow | undefined): boolean => Number(row?.[0]) === 0;
