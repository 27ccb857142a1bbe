import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import type { Tables } from '../tables.ts';
import { hasTable } from './missing_table.ts';

/*
 * The state of an import until it is finished. The table exists only during an import, so no migration creates it.
 */

/** How much an import has copied. */
export type UnfinishedImport = {
  /** The source, without user and password. */
  readonly source: string;
  readonly startedAt: Date;
  /** The primary key of the last copied row, for each table of which a row was copied. */
  readonly copied: Readonly<Record<string, readonly number[]>>;
};

/** What to do after an import was interrupted. */
export const howToContinue = 'Run the same "placement-manage import" again: it continues where it stopped.';

/** The message for an unfinished import, with the remedy. */
export const unfinishedImportProblem = `The database holds an unfinished import. ${howToContinue}`;

type ImportTarget = Pick<Database, 'kysely'>;

/** Whether an import was begun and is not finished. */
export const isImportUnfinished = ({ kysely }: ImportTarget): Promise<boolean> => hasTable(kysely, 'unfinished_import');

/** The unfinished import; undefined if there is none. */
export async function readUnfinishedImport(target: ImportTarget): Promise<UnfinishedImport | undefined> {
  if (!(await isImportUnfinished(target))) return undefined;
  const { rows } = await sql<UnfinishedImport>`
    select source, started_at as "startedAt", copied from unfinished_import`.execute(target.kysely);
  return rows[0];
}

/** Records that an import begins. Must be in the same transaction as the check that the database is empty. */
export async function beginImport({ kysely }: ImportTarget, source: string): Promise<void> {
  await sql`create table unfinished_import (
    source text not null,
    started_at timestamp not null default (now() at time zone 'utc'),
    copied jsonb not null default '{}')`.execute(kysely);
  await sql`insert into unfinished_import (source) values (${source})`.execute(kysely);
}

/** Records the last copied row of a table. Must be in the same transaction as the copied rows. */
export async function recordCopied(
  { kysely }: ImportTarget,
  table: keyof Tables,
  last: readonly number[],
): Promise<void> {
  await sql`update unfinished_import set copied = copied || ${JSON.stringify({ [table]: last })}::jsonb`.execute(
    kysely,
  );
}

/** Records that no row is copied. Must be in the same transaction as the deletion of the copied rows. */
export async function forgetCopied({ kysely }: ImportTarget): Promise<void> {
  await sql`update unfinished_import set copied = '{}'`.execute(kysely);
}

/** Records that the import is finished, by dropping its table. */
export async function endImport({ kysely }: ImportTarget): Promise<void> {
  await sql`drop table unfinished_import`.execute(kysely);
}
