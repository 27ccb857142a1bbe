import { tableOfNova } from '../../../db/schema/foreign_tables.ts';
import { isKnownRevision, revisions } from '../../../db/schema/revision.ts';
import {
  type ColumnKind,
  missingColumns,
  type UpstreamTable,
  upstreamTables,
} from '../../../db/schema/upstream_tables.ts';
import type { SourceDatabase } from './source.ts';

/** The SQL expression that reads a column from MySQL as text. The table has the alias `t`. */
function readColumn(column: string, kind: ColumnKind): string {
  const name = `t.${column}`;
  switch (kind) {
    case 'integer':
      return name;
    case 'text':
      return text(name);
    // MySQL finds a UUID in any case, PostgreSQL only as it is spelt, and the API writes small letters.
    case 'uuid':
      return `lower(${text(name)})`;
    // MySQL prints a FLOAT with six digits. Upstream reads these digits, so they are the value that counts.
    case 'ratio':
      return `concat(${name})`;
    // MySQL may hold dates that are not valid times: with year, month or day 0, and such as 30 February.
    case 'time':
      return `case when year(${name}) > 0 and month(${name}) > 0 and dayofmonth(${name}) between 1 and dayofmonth(last_day(${name}))
        then date_format(${name}, '%Y-%m-%d %H:%i:%s.%f') end`;
  }
}

/** Converts a text to Unicode from any character set. */
export const text = (expression: string): string => `convert(${expression} using utf8mb4)`;

/** A table that is copied, as the source has it. */
export type SourceTable = {
  readonly table: UpstreamTable;
  /** Whether the source has the table. */
  readonly exists: boolean;
  /** The SQL expression for each column of the table, in order. */
  readonly expressions: readonly string[];
};

/** The revision and the tables of a source. */
export type SourceSchema = {
  /** Upstream's revision, from the table alembic_version; undefined if it was never written there. */
  readonly revision: string | undefined;
  readonly tables: readonly SourceTable[];
  has(table: string, column: string): boolean;
  /** Whether the source takes texts of a column that differ only by upper and lower case for different ones. */
  tellsCase(table: string, column: string): boolean;
  /** Whether a column may have numbers that are no integers of 32 bits. No column of upstream may. */
  mayExceed(table: string, column: string): boolean;
};

/**
 * Reads which of the tables and columns to copy the source has.
 *
 * @throws Error if the source is not a database of Placement, has an unknown revision, or lacks anything else
 */
export async function readSourceSchema(source: SourceDatabase): Promise<SourceSchema> {
  const found = await source.query(
    'select lower(table_name), lower(column_name), collation_name, column_type from information_schema.columns ' +
      'where table_schema = database()',
  );
  const columns = new Map(
    found.map(([table, column, collation, type]) => [`${table}.${column}`, { collation, type: type ?? '' }]),
  );
  const has = (table: string, column: string): boolean => columns.has(`${table}.${column}`);
  const revision = await readRevision(source, has);
  const missing = missingColumns(has);
  if (missing.length > 0) {
    throw new Error(
      `The source ${source.name} lacks ${missing.join(', ')}. Name a complete database of Placement, and a user that can read ` +
        'all of it.',
    );
  }
  const tables = upstreamTables.map(
    (table): SourceTable => ({
      table,
      exists: table.key.every((column) => has(table.name, column)),
      expressions: Object.entries(table.columns).map(([column, kind]) =>
        has(table.name, column) ? readColumn(column, kind) : 'null',
      ),
    }),
  );
  return {
    revision,
    tables,
    has,
    // A column without a collation has bytes.
    tellsCase: (table, column) =>
      /^binary$|_bin$|_cs(_|$)/.test(columns.get(`${table}.${column}`)?.collation ?? 'binary'),
    mayExceed: (table, column) =>
      !/^(tiny|small|medium)?int(\(\d+\))?$/i.test(columns.get(`${table}.${column}`)?.type ?? ''),
  };
}

/** @throws Error if it is a database of another service, or of a newer Placement */
async function readRevision(source: SourceDatabase, has: SourceSchema['has']): Promise<string | undefined> {
  const [row] = has('alembic_version', 'version_num')
    ? await source.query('select version_num from alembic_version')
    : [];
  const revision = row?.[0] ?? undefined;
  if (revision !== undefined && isKnownRevision(revision)) return revision;
  // Placement's first tables were copied from Nova's database by a script, which writes no revision. They are imported if they are
  // complete, as a PostgreSQL database without a revision is adopted.
  const isNova = has(tableOfNova, 'id');
  if (revision === undefined && has('resource_providers', 'id') && !isNova) return undefined;
  const what =
    revision !== undefined
      ? `at the unknown revision ${revision}`
      : isNova
        ? "the database of Nova's API"
        : 'no database of OpenStack Placement';
  throw new Error(
    `The source ${source.name} is ${what}. Name a database of Placement (not Nova's) at one of the revisions ` +
      `${revisions.join(', ')}.`,
  );
}
