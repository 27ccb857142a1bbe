import { isKnownRevision, revisions } from '../../../db/schema/revision.ts';
import { type CopiedTable, copiedTables } from './copied_tables.ts';
import type { Source } from './source.ts';
import { readColumn } from './source_columns.ts';

/** A table that is copied, as the source has it. */
export type SourceTable = {
  readonly table: CopiedTable;
  /** Whether the source has the table. */
  readonly exists: boolean;
  /** The SQL expression for each column of the table, in order. */
  readonly expressions: readonly string[];
};

/** The revision and the tables of a source. */
export type SourceSchema = {
  /** Upstream's revision, from the table alembic_version. */
  readonly revision: string;
  readonly tables: readonly SourceTable[];
  has(table: string, column: string): boolean;
};

/**
 * Reads which of the tables and columns to copy the source has. Consumer types came with revision 422ece571366; an
 * older source may lack them.
 *
 * @throws Error if the source is not a database of Placement, has an unknown revision, or lacks anything else
 */
export async function readSourceSchema(source: Source): Promise<SourceSchema> {
  const found = await source.query(
    'select lower(table_name), lower(column_name) from information_schema.columns where table_schema = database()',
  );
  const columns = new Set(found.map(([table, column]) => `${table}.${column}`));
  const has = (table: string, column: string): boolean => columns.has(`${table}.${column}`);
  const revision = await readRevision(source, has);
  const cameLater = (table: string, column: string): boolean =>
    !has('consumers', 'consumer_type_id') && (table === 'consumer_types' || column === 'consumer_type_id');
  const missing = copiedTables.flatMap(({ name, columns }) =>
    Object.keys(columns)
      .filter((column) => !has(name, column) && !cameLater(name, column))
      .map((column) => `${name}.${column}`),
  );
  if (missing.length > 0) {
    throw new Error(
      `The source ${source.name} lacks ${missing.join(', ')}. Name a complete database of Placement, and a user that can read ` +
        'all of it.',
    );
  }
  const tables = copiedTables.map(
    (table): SourceTable => ({
      table,
      exists: table.key.every((column) => has(table.name, column)),
      expressions: Object.entries(table.columns).map(([column, kind]) =>
        has(table.name, column) ? readColumn(table.name, column, kind) : 'null',
      ),
    }),
  );
  return { revision, tables, has };
}

async function readRevision(source: Source, has: SourceSchema['has']): Promise<string> {
  const [row] = has('alembic_version', 'version_num')
    ? await source.query('select version_num from alembic_version')
    : [];
  const revision = row?.[0] ?? undefined;
  if (revision !== undefined && isKnownRevision(revision)) return revision;
  const what = revision === undefined ? 'no database of OpenStack Placement' : `at the unknown revision ${revision}`;
  throw new Error(
    `The source ${source.name} is ${what}. Name a database of Placement (not Nova's) at one of the revisions ` +
      `${revisions.join(', ')}.`,
  );
}
