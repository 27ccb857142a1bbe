import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
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
import { findBadData } from './bad_data.ts';
import { findCaseTrouble } from './case_trouble.ts';
import { copyTable } from './copy_table.ts';
import { fingerprintSource, fingerprintTarget } from './fingerprint.ts';
import type { ImportReport } from './import_report.ts';
import { defaultPageSize } from './read_pages.ts';
import type { Source } from './source.ts';
import { readSourceSchema, type SourceTable } from './source_schema.ts';
import { clearTables, inTransaction, lockTables, logChange, readContent, type Target } from './target.ts';

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
  source: Source,
  database: Database,
  report: ImportReport,
  pageSize = defaultPageSize,
): Promise<Imported> {
  // One connection for all data: the lock is this connection's, and so nothing is copied without it.
  return database.kysely.connection().execute(async (kysely) => {
    const target: Database = { ...database, kysely, patient: kysely };
    await takeLock(target);
    const unfinished = await readUnfinishedImport(target);
    if (unfinished === undefined) refuseContent(await readContent(target));
    else if (unfinished.source !== source.name) throw otherSource(unfinished, source);
    const tables = await inspect(source, report);
    // On a server by a connection without time limits. The embedded database has no second connection.
    await migrateToLatest(database.engine === 'embedded' ? target : { ...target, patient: database.patient });
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
      await endImport(transaction);
    });
    await syncStandardNames(target);
    return imported;
  });
}

/** Takes the lock, until the connection is closed. */
async function takeLock({ kysely }: Target): Promise<void> {
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

const otherSource = ({ source, startedAt }: UnfinishedImport, { name }: Source): Error =>
  new Error(
    `The target holds an unfinished import from ${source} (begun ${startedAt.toISOString()}), not from ${name}. Finish that one ` +
      'with --from naming its source, or drop the target and create it again.',
  );

async function inspect(source: Source, report: ImportReport): Promise<readonly SourceTable[]> {
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
const begin = (source: Source, target: Target): Promise<void> =>
  inTransaction(target, async (transaction) => {
    await lockTables(transaction);
    refuseContent(await readContent(transaction));
    await clearTables(transaction);
    await beginImport(transaction, source.name);
  });

/** @returns the last key that was copied of each table; none if the copied rows differ from the source now */
async function resume(
  source: Source,
  target: Target,
  tables: readonly SourceTable[],
  { copied, startedAt }: UnfinishedImport,
  report: ImportReport,
): Promise<UnfinishedImport['copied']> {
  report.note(`Continuing the import that was begun ${startedAt.toISOString()}.`);
  for (const table of tables.filter(({ table: { name } }) => copied[name] !== undefined)) {
    const there = await fingerprintSource(source, table, copied[table.table.name]);
    if (isDeepStrictEqual(there, await fingerprintTarget(target, table.table))) continue;
    report.note(`What was copied of ${table.table.name} is not what the source holds now: starting over.`);
    await inTransaction(target, async (transaction) => {
      await clearTables(transaction);
      await forgetCopied(transaction);
    });
    return {};
  }
  return copied;
}

async function verify(source: Source, target: Target, tables: readonly SourceTable[]): Promise<Imported> {
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
