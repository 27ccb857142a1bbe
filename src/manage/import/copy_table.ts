import { recordCopied } from '../../../db/schema/unfinished_import.ts';
import { insertRows } from '../../../db/statements/insert_rows.ts';
import { messageOf } from '../../text/message_of.ts';
import type { ColumnKind, CopiedTable } from './copied_tables.ts';
import type { ImportReport } from './import_report.ts';
import type { RowKey } from './key_order.ts';
import { countRows, type Page, readPages } from './read_pages.ts';
import type { Source } from './source.ts';
import type { SourceTable } from './source_schema.ts';
import { inTransaction, type Target, withLooseLinks, withoutTriggers } from './target.ts';

/**
 * Copies the rows of a table that come after a key. Each page is written in one transaction, together with the key that
 * the copy has reached. Providers refer to each other, so all of them are written in a single transaction.
 *
 * @throws Error that names the table if a row cannot be stored
 */
export async function copyTable(
  source: Source,
  target: Target,
  table: SourceTable,
  after: RowKey | undefined,
  report: ImportReport,
  pageSize: number,
): Promise<void> {
  const { name } = table.table;
  const total = await countRows(source, table);
  let done = total - (await countRows(source, table, after));
  const copyPages = async (use: (page: Page) => Promise<void>): Promise<void> => {
    for await (const page of readPages(source, table, after, pageSize)) {
      await use(page);
      done += page.rows.length;
      report.progress(name, done, total);
    }
  };
  report.progress(name, done, total);
  const write = (transaction: Target, page: Page): Promise<void> => writePage(transaction, table.table, page);
  if (name === 'resource_providers') {
    await inTransaction(target, (transaction) =>
      withoutTriggers(transaction, table.table, () =>
        withLooseLinks(transaction, () => copyPages((page) => write(transaction, page))),
      ),
    );
  } else {
    await copyPages((page) =>
      inTransaction(target, (transaction) => withoutTriggers(transaction, table.table, () => write(transaction, page))),
    );
  }
}

async function writePage(target: Target, { name, columns }: CopiedTable, { rows, last }: Page): Promise<void> {
  const ofRows = Object.entries(columns).map(([column, kind], place) => ({
    name: column,
    type: sqlTypes[kind],
    values: rows.map((row) => row[place] ?? null),
  }));
  try {
    await insertRows(target, name, ofRows);
  } catch (error) {
    throw new Error(`The rows of ${name} up to ${last.join(', ')} cannot be stored: ${messageOf(error)}.`, {
      cause: error,
    });
  }
  await recordCopied(target, name, last);
}

const sqlTypes: Readonly<Record<ColumnKind, string>> = {
  integer: 'integer',
  text: 'text',
  uuid: 'text',
  ratio: 'double precision',
  time: 'timestamp',
};
