import { isDeepStrictEqual } from 'node:util';
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../../db/engine/connect.ts';
import { onlyRow } from '../../../db/engine/only_row.ts';
import { analyzeTables } from '../../../db/schema/analyze_tables.ts';
import { raiseSequences } from '../../../db/schema/id_sequences.ts';
import { migrateToLatest } from '../../../db/schema/migrate.ts';
import { syncStandardNames } from '../../../db/schema/sync_standard_names.ts';
import {
  beginImport,
  endImport,
  forgetCopied,
  readUnfinishedImport,
  type UnfinishedImport,
} from '../../../db/schema/unfinished_import.ts';
import { type ColumnKind, type UpstreamTable, upstreamTables } from '../../../db/schema/upstream_tables.ts';
import { type BadData, findBadData, rowsOf } from './bad_data.ts';
import { defaultPageSize, type RowKey, upTo } from './read_pages.ts';
import type { SourceDatabase, SourceRow } from './source.ts';
import { readSourceSchema, type SourceSchema, type SourceTable, text } from './source_schema.ts';
import {
  clearTables,
  copyTable,
  type ImportReport,
  inTransaction,
  lockTables,
  logChange,
  markDerivedStale,
  readContent,
  type TargetDatabase,
} from './target.ts';

/** How many rows each table has after the import. */
export type Imported = Readonly<Record<string, number>>;

/**
 * Copies a deployment of upstream's Placement, with its ids, into an empty database. If an earlier import from the same
 * source is unfinished, this one continues it. At the end the copy is compared with the source.
 *
 * The copy has the data that the source holds when this call begins. If rows of the earlier import differ from that,
 * the import starts over.
 *
 * @throws Error with the remedy if the source cannot be imported, if the target is not empty or holds an unfinished
 *   import from another source, or if another client writes to the target
 */
export async function importDeployment(
  source: SourceDatabase,
  database: Database,
  report: ImportReport,
  pageSize = defaultPageSize,
): Promise<Imported> {
  // One connection for all data: the lock is this connection's, and so nothing is copied without it.
  return database.kysely.connection().execute(async (kysely) => {
    const target: Database = { ...database, kysely, unlimited: kysely };
    await takeLock(target);
    const unfinished = await readUnfinishedImport(target);
    if (unfinished === undefined) refuseContent(await readContent(target));
    else if (unfinished.source !== source.name) throw otherSource(unfinished, source);
    const tables = await inspect(source, report);
    // On a server by a connection without time limits. The embedded database has no second connection.
    await migrateToLatest(database.engine === 'embedded' ? target : { ...target, unlimited: database.unlimited });
    if (unfinished === undefined) await begin(source, target);
    const copied = unfinished === undefined ? {} : await resume(source, target, tables, unfinished, report);
    for (const table of tables) await copyTable(source, target, table, copied[table.table.name], report, pageSize);
    report.note('Comparing all tables with the source.');
    const imported = await verify(source, target, tables);
    report.note('Verified: every table has the same number of rows and the same checksum in source and target.');
    await inTransaction(target, async (transaction) => {
      await raiseSequences(transaction);
      await analyzeTables(transaction.kysely);
      await logChange(transaction);
      await markDerivedStale(transaction);
      await endImport(transaction);
    });
    await syncStandardNames(target);
    return imported;
  });
}

/** Takes the lock, until the connection is closed. */
async function takeLock({ kysely }: TargetDatabase): Promise<void> {
  const lock = sql<{ taken: boolean }>`select pg_try_advisory_lock(hashtext('placement import')) as taken`;
  if (!(await onlyRow(kysely, lock)).taken)
    throw new Error('Another import into this database is running. Wait for its end.');
}

function refuseContent(content: readonly string[]): void {
  if (content.length === 0) return;
  throw new Error(
    `The target is not empty: it holds ${content.join(', ')}. Import into an empty database: create one, or drop this one and ` +
      'create it again, if its data is not needed.',
  );
}

const otherSource = ({ source, startedAt }: UnfinishedImport, { name }: SourceDatabase): Error =>
  new Error(
    `The target holds an unfinished import from ${source} (begun ${startedAt.toISOString()}), not from ${name}. Finish that one ` +
      'with --from naming its source, or drop the target and create it again.',
  );

async function inspect(source: SourceDatabase, report: ImportReport): Promise<readonly SourceTable[]> {
  const schema = await readSourceSchema(source);
  report.note(
    schema.revision === undefined
      ? `The source ${source.name} has no revision in alembic_version. It has all tables of OpenStack Placement.`
      : `The source ${source.name} is at revision ${schema.revision}.`,
  );
  const bad = [await findBadData(source, schema), await findCaseTrouble(source, schema)];
  const problems = bad.flatMap((each) => each.problems);
  const warnings = bad.flatMap((each) => each.warnings);
  if (problems.length > 0) throw new Error([`The source holds data that cannot be imported:`, ...problems].join('\n'));
  for (const warning of warnings) report.note(`Warning: ${warning}`);
  return schema.tables;
}

/**
 * The tables are locked: no other write may come between the check that the target is empty and the removal of its
 * rows.
 */
const begin = (source: SourceDatabase, target: TargetDatabase): Promise<void> =>
  inTransaction(target, async (transaction) => {
    await lockTables(transaction);
    refuseContent(await readContent(transaction));
    await clearTables(transaction);
    await beginImport(transaction, source.name);
  });

/** @returns the last key that was copied of each table; none if the copied rows differ from the source now */
async function resume(
  source: SourceDatabase,
  target: TargetDatabase,
  tables: readonly SourceTable[],
  { copied, startedAt }: UnfinishedImport,
  report: ImportReport,
): Promise<UnfinishedImport['copied']> {
  report.note(`Continuing the import that was begun ${startedAt.toISOString()}.`);
  for (const table of tables.filter(({ table: { name } }) => copied[name] !== undefined)) {
    const there = await fingerprintSource(source, table, copied[table.table.name]);
    if (isDeepStrictEqual(there, await fingerprintTarget(target, table.table))) continue;
    report.note(`The copied rows of ${table.table.name} are not those of the source now: the import starts over.`);
    await inTransaction(target, async (transaction) => {
      await clearTables(transaction);
      await forgetCopied(transaction);
    });
    return {};
  }
  return copied;
}

async function verify(
  source: SourceDatabase,
  target: TargetDatabase,
  tables: readonly SourceTable[],
): Promise<Imported> {
  const imported: Record<string, number> = {};
  const problems: string[] = [];
  for (const table of tables) {
    const { name } = table.table;
    const there = await fingerprintSource(source, table);
    const here = await fingerprintTarget(target, table.table);
    imported[name] = here.count;
    if (isDeepStrictEqual(there, here)) continue;
    problems.push(
      `${name}: ${there.count} rows with checksum ${there.sum} in the source, ${here.count} with ${here.sum} here`,
    );
  }
  if (problems.length === 0) return imported;
  const remedy = 'Another client has written to the target. Stop it, and run the same command again: it starts over.';
  throw new Error([`The copy is not what the source holds. ${remedy}`, ...problems].join('\n'));
}

/**
 * The number of rows, and the sum of 32 bits of each row's MD5. Two tables with the same values have the same
 * fingerprint.
 */
type Fingerprint = { readonly count: number; readonly sum: string };

/** @param last only rows up to this key are counted; if it is undefined, all rows */
async function fingerprintSource(
  source: SourceDatabase,
  { table, exists, expressions }: SourceTable,
  last?: RowKey,
): Promise<Fingerprint> {
  if (!exists) return { count: 0, sum: '0' };
  const values = Object.values(table.columns).map((kind, index) => {
    const value = expressions[index] ?? 'null';
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
function fingerprintTarget({ kysely }: TargetDatabase, table: UpstreamTable): Promise<Fingerprint> {
  const values = Object.entries(table.columns).map(
    ([column, kind]) => sql`coalesce(${inTarget[kind](sql.ref(`t.${column}`))}, '~')`,
  );
  const query = sql<Fingerprint>`
    select count(*)::integer as count, coalesce(sum(
      ('x' || left(md5(convert_to(concat_ws('|', ${sql.join(values)}), 'UTF8')), 8))::bit(32)::bigint), 0)::text as sum
    from ${sql.table(table.name)} t`;
  return onlyRow(kysely, query);
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

/** Names that clients write in one spelling, while MySQL, with most collations, finds a name by any spelling. */
const names: readonly (readonly [table: UpstreamTable['name'], column: string])[] = [
  ['resource_providers', 'name'],
  ['projects', 'external_id'],
  ['users', 'external_id'],
];

const uuids = upstreamTables.flatMap(({ name, columns }) =>
  Object.keys(columns).flatMap((column) => (columns[column] === 'uuid' ? [[name, column] as const] : [])),
);

const inSmallLetters = (column: string): string => `lower(${text(`t.${column}`)})`;

/**
 * Finds what changes because PostgreSQL compares texts with their case, and most databases of MySQL do not. UUIDs are copied in small
 * letters, names as they are.
 */
async function findCaseTrouble(source: SourceDatabase, { has, tellsCase }: SourceSchema): Promise<BadData> {
  const problems: string[] = [];
  const warnings: string[] = [];
  const isThere = ([table, column]: readonly [string, string]): boolean => has(table, column);
  for (const [table, column] of uuids.filter(isThere)) {
    // Allocations have the UUID of their consumer many times.
    const isApart = column === 'consumer_id' ? `count(distinct t.${column}) > 1` : 'count(*) > 1';
    const alike = tellsCase(table, column) ? await findAlike(source, table, column, isApart) : undefined;
    if (alike !== undefined) problems.push(`${alike}, and this service takes them for one. ${correction}`);
    const capitals = await findCapitals(source, table, column);
    if (capitals !== undefined) warnings.push(`${capitals}. They are copied in small letters.`);
  }
  if (tellsCase('consumers', 'uuid') || tellsCase('allocations', 'consumer_id')) {
    problems.push(...(await findCaseVariants(source)));
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

const correction = 'Correct the source: delete all but one of them by OpenStack Placement.';

/** Values that differ from each other only by case. */
async function findAlike(
  source: SourceDatabase,
  table: string,
  column: string,
  having: string,
): Promise<string | undefined> {
  const [row] = await source.query(
    `select count(*), min(small) from (select ${inSmallLetters(column)} as small from ${table} t group by small having ${having}) ` +
      'as alike',
  );
  return isNone(row)
    ? undefined
    : `${table}: several values of ${column} differ only by upper and lower case (such as ${row?.[1]})`;
}

/** Values with capital letters. */
async function findCapitals(source: SourceDatabase, table: string, column: string): Promise<string | undefined> {
  const [row] = await source.query(
    `select count(*), min(${text(`t.${column}`)}) from ${table} t ` +
      `where cast(${text(`t.${column}`)} as binary) <> cast(${inSmallLetters(column)} as binary)`,
  );
  return isNone(row) ? undefined : `${rowsOf(table, row)} capital letters in ${column} (such as ${row?.[1]})`;
}

/** Allocations whose consumer has no record, only one in another spelling, which the source takes for another consumer. */
async function findCaseVariants(source: SourceDatabase): Promise<readonly string[]> {
  const [row] = await source.query(
    `select count(*), min(small) from (select small from (select ${inSmallLetters('uuid')} as small from consumers t
      union all select distinct ${inSmallLetters('consumer_id')} from allocations t left join consumers c on c.uuid = t.consumer_id
      where c.uuid is null) as each_one group by small having count(*) > 1) as alike`,
  );
  if (isNone(row)) return [];
  return [
    `allocations: consumers without a record differ from others only by upper and lower case (such as ${row?.[1]}), and this service ` +
      `takes them for one. ${correction}`,
  ];
}

const isNone = (row: SourceRow | undefined): boolean => Number(row?.[0]) === 0;
