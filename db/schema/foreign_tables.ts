import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { neededTables } from './executed_migrations.ts';
import { missingColumns, upstreamTables } from './upstream_tables.ts';

/** The tables that this service has and OpenStack Placement does not have. */
export const ownTables: readonly string[] = neededTables
  .filter((table) => upstreamTables.every(({ name }) => name !== table))
  .toSorted();

/** A table of Nova's API database, which also has most tables of Placement: it had them before Placement had a database. */
export const tableOfNova = 'cell_mappings';

/** How many of the columns that are missing a message names. */
const namedAtMost = 5;

/**
 * Finds tables of another program in a database that none of our migrations was run on.
 *
 * @returns a sentence that names them; undefined if the database is empty, or has the tables of upstream
 */
export async function findForeignTables(database: Pick<Database, 'kysely'>): Promise<string | undefined> {
  const found = await readColumns(database, [...upstreamTables.map(({ name }) => name), ...ownTables, tableOfNova]);
  if (found.has(tableOfNova)) return `The database is that of Nova's API: it has the table ${tableOfNova}.`;
  const taken = ownTables.filter((name) => found.has(name));
  if (taken.length > 0)
    return `The database has tables of another program that this one makes itself: ${taken.join(', ')}.`;
  if (found.size === 0) return undefined;
  const missing = missingColumns((table, column) => found.get(table)?.includes(column) ?? false);
  if (missing.length === 0) return undefined;
  const others = missing.length > namedAtMost ? ` and ${missing.length - namedAtMost} more` : '';
  return (
    `The database has ${[...found.keys()].join(', ')}, but it is no complete database of OpenStack Placement: it lacks ` +
    `${missing.slice(0, namedAtMost).join(', ')}${others}.`
  );
}

/** Which of these tables or views the current schema has, with their columns. */
async function readColumns(
  { kysely }: Pick<Database, 'kysely'>,
  tables: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await sql<{ readonly name: string; readonly columns: readonly string[] }>`
    select relname as name, array_agg(attname::text) as columns
    from pg_class join pg_attribute on attrelid = pg_class.oid
    where relnamespace = quote_ident(current_schema())::regnamespace and relname = any(${tables}::text[])
      and relkind in ('r', 'p', 'v', 'm', 'f') and not attisdropped
    group by relname order by relname`.execute(kysely);
  return new Map(rows.map(({ name, columns }) => [name, columns]));
}
