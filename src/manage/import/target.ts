import { sql } from 'kysely';
import type { Database } from '../../../db/engine/connect.ts';
import { isUnavailable } from '../../../db/engine/failures.ts';
import { onlyRow } from '../../../db/engine/only_row.ts';
import { standardResourceClasses } from '../../../db/schema/standard_resource_classes.ts';
import { standardTraits } from '../../../db/schema/standard_traits.ts';
import { recordCopied } from '../../../db/schema/unfinished_import.ts';
import { type ColumnKind, type UpstreamTable, upstreamTables } from '../../../db/schema/upstream_tables.ts';
import { allUsagesAreDoubtful } from '../../../db/statements/claims/project_usages.ts';
import { heldIsNotTakenIn } from '../../../db/statements/usage_history.ts';
import { messageOf } from '../../text/print.ts';
import { countRows, type RowKey, readPages, type SourcePage } from './read_pages.ts';
import type { SourceDatabase } from './source.ts';
import type { SourceTable } from './source_schema.ts';

/** Receives the progress of an import. */
export type ImportReport = {
  /** Reports one line about an event. */
  note(line: string): void;
  /** Reports that `done` rows of a table are copied. The last call for a table has `done` equal to `total`. */
  progress(table: string, done: number, total: number): void;
};

/** A connection or transaction of the database that receives the import. */
export type TargetDatabase = Pick<Database, 'kysely'>;

/** Runs `use` in one transaction. */
export const inTransaction = <T>({ kysely }: TargetDatabase, use: (target: TargetDatabase) => Promise<T>): Promise<T> =>
  kysely.transaction().execute((transaction) => use({ kysely: transaction }));

const allTables = sql.join(upstreamTables.map(({ name }) => sql.table(name)));

/** Locks the tables against all other clients until the transaction ends. */
export async function lockTables({ kysely }: TargetDatabase): Promise<void> {
  await sql`lock table ${allTables} in access exclusive mode`.execute(kysely);
}

/** Removes all rows, also the standard traits and classes, which have other ids in the source. */
export async function clearTables({ kysely }: TargetDatabase): Promise<void> {
  await sql`truncate ${allTables}`.execute(kysely);
}

/**
 * The content of the target, for messages: `3 resource_providers`. Standard traits and resource classes do not count.
 */
export async function readContent({ kysely }: TargetDatabase): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = current_schema()`.execute(kysely);
  const content: string[] = [];
  for (const { name } of upstreamTables.filter((table) => rows.some((row) => row.name === table.name))) {
    const standard = name === 'traits' ? standardTraits : name === 'resource_classes' ? standardResourceClasses : [];
    const where = standard.length === 0 ? sql`` : sql`where name <> all (${standard}::text[])`;
    const query = sql<{ count: number }>`select count(*)::integer as count from ${sql.table(name)} ${where}`;
    const { count } = await onlyRow(kysely, query);
    if (count > 0) content.push(`${count} ${name}`);
  }
  return content;
}

/**
 * Writes rows of a table without the triggers, because these take most of the time. At the end `logChange` logs all changes as one, and
 * `markDerivedStale` marks the counts of usages and the history. The online data migration backfill_etags makes the entity tags.
 *
 * @param use runs within the transaction, which locks the table against other writes
 */
async function withoutTriggers(
  { kysely }: TargetDatabase,
  { name }: UpstreamTable,
  use: () => Promise<void>,
): Promise<void> {
  await sql`alter table ${sql.table(name)} disable trigger user`.execute(kysely);
  await use();
  await sql`alter table ${sql.table(name)} enable trigger user`.execute(kysely);
}

/**
 * Logs one change that makes every process load all data again, and every running claim check its inventories again.
 */
export async function logChange({ kysely }: TargetDatabase): Promise<void> {
  await sql`insert into inventory_changes (provider_id) values (null)`.execute(kysely);
  await sql`insert into provider_changes (provider_id, whole) values (null, false)`.execute(kysely);
}

/** Marks what triggers derive from allocations as stale, if the target had that switched on: the service derives it again. */
export async function markDerivedStale({ kysely }: TargetDatabase): Promise<void> {
  await allUsagesAreDoubtful.execute(kysely);
  await heldIsNotTakenIn.execute(kysely);
}

/**
 * Providers can be written in any order within the transaction, because a parent may have a higher id than its child.
 */
async function withDeferredParents({ kysely }: TargetDatabase, use: () => Promise<void>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select conname as name from pg_constraint where contype = 'f' and conrelid = 'resource_providers'::regclass
      and confrelid = conrelid`.execute(kysely);
  const alterAll = async (how: string): Promise<void> => {
    for (const { name } of rows) {
      await sql`alter table resource_providers alter constraint ${sql.id(name)} ${sql.raw(how)}`.execute(kysely);
    }
  };
  await alterAll('deferrable initially deferred');
  await use();
  await sql`set constraints all immediate`.execute(kysely);
  await alterAll('not deferrable');
}

/**
 * Copies the rows of a table that come after a key. Each page is written in one transaction, together with the key that
 * the copy has reached. Providers refer to each other, so all of them are written in a single transaction.
 *
 * @throws Error that names the table if a row cannot be stored
 */
export async function copyTable(
  source: SourceDatabase,
  target: TargetDatabase,
  table: SourceTable,
  after: RowKey | undefined,
  report: ImportReport,
  pageSize: number,
): Promise<void> {
  const { name } = table.table;
  const total = await countRows(source, table);
  let done = total - (await countRows(source, table, after));
  const copyPages = async (use: (page: SourcePage) => Promise<void>): Promise<void> => {
    for await (const page of readPages(source, table, after, pageSize)) {
      await use(page);
      done += page.rows.length;
      report.progress(name, done, total);
    }
  };
  report.progress(name, done, total);
  const write = (transaction: TargetDatabase, page: SourcePage): Promise<void> =>
    writePage(transaction, table.table, page);
  if (name === 'resource_providers') {
    await inTransaction(target, (transaction) =>
      withoutTriggers(transaction, table.table, () =>
        withDeferredParents(transaction, () => copyPages((page) => write(transaction, page))),
      ),
    );
  } else {
    await copyPages((page) =>
      inTransaction(target, (transaction) => withoutTriggers(transaction, table.table, () => write(transaction, page))),
    );
  }
}

/** Inserts the rows of a page with their ids, by one statement. */
async function writePage(
  { kysely }: TargetDatabase,
  { name, columns }: UpstreamTable,
  { rows, last }: SourcePage,
): Promise<void> {
  const names = Object.keys(columns).map((column) => sql.ref(column));
  const arrays = Object.values(columns).map(
    (kind, index) => sql`${rows.map((row) => row[index] ?? null)}::${sql.raw(sqlTypes[kind])}[]`,
  );
  try {
    await sql`insert into ${sql.table(name)} (${sql.join(names)}) select * from unnest(${sql.join(arrays)})`.execute(
      kysely,
    );
  } catch (error) {
    if (isUnavailable(error)) throw error; // it is not because of the rows
    throw new Error(`The rows of ${name} up to ${last.join(', ')} cannot be stored: ${messageOf(error)}.`, {
      cause: error,
    });
  }
  await recordCopied({ kysely }, name, last);
}

const sqlTypes: Readonly<Record<ColumnKind, string>> = {
  integer: 'integer',
  text: 'text',
  uuid: 'text',
  ratio: 'double precision',
  time: 'timestamp',
};
