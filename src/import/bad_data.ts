import { copiedTables, type Reference, references } from './copied_tables.ts';
import type { Source, SourceRow } from './source.ts';
import type { SourceSchema } from './source_schema.ts';

/** What is wrong with the data of the source, a sentence each. */
export type BadData = {
  /** What cannot be stored, with the statement that mends it. */
  readonly problems: readonly string[];
  /** What is copied as it is. */
  readonly warnings: readonly string[];
};

/** Looks for rows that name others which do not exist, and for texts that PostgreSQL cannot store. */
export async function findBadData(source: Source, { has }: SourceSchema): Promise<BadData> {
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const reference of references.filter(({ table, column, to }) => has(table, column) && has(to, 'id'))) {
    const orphans = await findOrphans(source, reference);
    if (orphans !== undefined) (reference.foreignKey === undefined ? warnings : problems).push(orphans);
  }
  for (const { name, columns } of copiedTables) {
    const texts = Object.keys(columns).filter((column) => columns[column] === 'text' && has(name, column));
    for (const column of texts) problems.push(...(await findNuls(source, name, column)));
  }
  return { problems, warnings };
}

async function findOrphans(source: Source, { table, column, to, foreignKey }: Reference): Promise<string | undefined> {
  // The derived table lets MySQL change a table that is asked in the same statement.
  const where = `${column} not in (select id from (select id from ${to}) as there)`;
  const [row] = await source.query(`select count(*), min(${column}) from ${table} where ${where}`);
  if (Number(row?.[0]) === 0) return undefined;
  const found = `${rowsOf(table, row)} a ${column} that ${to} does not have (such as ${row?.[1]})`;
  switch (foreignKey) {
    case 'nullable':
      return `${found}, which cannot be stored. Mend the source: update ${table} set ${column} = null where ${where};`;
    case 'required':
      return `${found}, which cannot be stored. Mend the source: delete from ${table} where ${where};`;
    case undefined:
      return `${found}. They are copied as they are; clients do not see them, as before.`;
  }
}

async function findNuls(source: Source, table: string, column: string): Promise<readonly string[]> {
  const where = `instr(cast(${column} as binary), char(0)) > 0`;
  const [row] = await source.query(`select count(*) from ${table} where ${where}`);
  if (Number(row?.[0]) === 0) return [];
  const mend = `update ${table} set ${column} = replace(${column}, char(0), '') where ${where};`;
  return [`${rowsOf(table, row)} a NUL in ${column}, which cannot be stored. Mend the source: ${mend}`];
}

const rowsOf = (table: string, row: SourceRow | undefined): string =>
  row?.[0] === '1' ? `${table}: 1 row has` : `${table}: ${row?.[0]} rows have`;
