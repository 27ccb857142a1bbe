import { type Reference, references, upstreamTables } from '../../../db/schema/upstream_tables.ts';
import type { SourceDatabase, SourceRow } from './source.ts';
import type { SourceSchema } from './source_schema.ts';

/** Problems of the data of the source, one sentence for each. */
export type BadData = {
  /** Data that cannot be stored, each with the statement that corrects it. */
  readonly problems: readonly string[];
  /** Wrong data that is copied unchanged. */
  readonly warnings: readonly string[];
};

/** Finds rows that refer to rows which do not exist, and texts and numbers that PostgreSQL cannot store. */
export async function findBadData(source: SourceDatabase, { has, mayExceed }: SourceSchema): Promise<BadData> {
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const reference of references.filter(({ table, column, to }) => has(table, column) && has(to, 'id'))) {
    const orphans = await findOrphans(source, reference);
    if (orphans !== undefined) (reference.foreignKey === undefined ? warnings : problems).push(orphans);
  }
  for (const { name, columns } of upstreamTables) {
    const texts = Object.keys(columns).filter(
      (column) => ['text', 'uuid'].includes(columns[column] ?? '') && has(name, column),
    );
    for (const column of texts) problems.push(...(await findNuls(source, name, column)));
    const integers = Object.keys(columns).filter(
      (column) => columns[column] === 'integer' && has(name, column) && mayExceed(name, column),
    );
    for (const column of integers) problems.push(...(await findTooLarge(source, name, column)));
  }
  return { problems, warnings };
}

async function findOrphans(
  source: SourceDatabase,
  { table, column, to, foreignKey }: Reference,
): Promise<string | undefined> {
  // MySQL can update a table and read it in the same statement only through a derived table.
  const where = `${column} not in (select id from (select id from ${to}) as there)`;
  const [row] = await source.query(`select count(*), min(${column}) from ${table} where ${where}`);
  if (Number(row?.[0]) === 0) return undefined;
  const found = `${rowsOf(table, row)} a ${column} that ${to} does not have (such as ${row?.[1]})`;
  switch (foreignKey) {
    case 'nullable':
      return `${found}, which cannot be stored. Correct the source: update ${table} set ${column} = null where ${where};`;
    case 'required':
      return `${found}, which cannot be stored. Correct the source: delete from ${table} where ${where};`;
    case undefined:
      return `${found}. They are copied as they are; clients do not see them, as before.`;
  }
}

async function findNuls(source: SourceDatabase, table: string, column: string): Promise<readonly string[]> {
  const where = `instr(cast(${column} as binary), char(0)) > 0`;
  const [row] = await source.query(`select count(*) from ${table} where ${where}`);
  if (Number(row?.[0]) === 0) return [];
  const correction = `update ${table} set ${column} = replace(${column}, char(0), '') where ${where};`;
  return [`${rowsOf(table, row)} a NUL in ${column}, which cannot be stored. Correct the source: ${correction}`];
}

async function findTooLarge(source: SourceDatabase, table: string, column: string): Promise<readonly string[]> {
  const where = `${column} not between -2147483648 and 2147483647`;
  const [row] = await source.query(`select count(*), min(${column}) from ${table} where ${where}`);
  if (Number(row?.[0]) === 0) return [];
  const isId = /(^|_)id$/.test(column);
  const correction = isId
    ? 'give these rows other ids.'
    : `update ${table} set ${column} = greatest(-2147483648, least(2147483647, ${column})) where ${where};`;
  return [
    `${rowsOf(table, row)} a ${column} that is no integer of 32 bits (such as ${row?.[1]}), which cannot be stored. ` +
      `Correct the source: ${correction}`,
  ];
}

/** The beginning of a sentence about the rows that a statement counted. */
export const rowsOf = (table: string, row: SourceRow | undefined): string =>
  row?.[0] === '1' ? `${table}: 1 row has` : `${table}: ${row?.[0]} rows have`;
