import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { hasTable } from '../missing_table.ts';
import type { Tables } from '../tables.ts';

/*
 * What an import remembers until it is finished. The table is there meanwhile only, and so it is in no migration.
 */

/** How far an import came. */
export type UnfinishedImport = {
  /** The source, without user and password. */
  readonly source: string;
  readonly startedAt: Date;
  /** The primary key of the last row copied, for each table that has any. */
  readonly copied: Readonly<Record<string, readonly number[]>>;
};

/** For people, with the remedy. */
export const unfinishedImportProblem =
  'The database holds an unfinished import. Run the same "placement-manage import" again: it goes on where it ended.';

type Target = Pick<Database, 'kysely'>;

/** Whether an import was begun and is not finished. */
export const isImportUnfinished = (target: Target): Promise<boolean> => hasTable(target, 'unfinished_import');

/** The import that is not finished; undefined where there is none. */
export async function readUnfinishedImport(target: Target): Promise<UnfinishedImport | undefined> {
  if (!(await isImportUnfinished(target))) return undefined;
  const { rows } = await sql<UnfinishedImport>`
    select source, started_at as "startedAt", copied from unfinished_import`.execute(target.kysely);
  return rows[0];
}

/** Notes that an import begins. To be committed with the look whether the database is empty. */
export async function beginImport({ kysely }: Target, source: string): Promise<void> {
  await sql`create table unfinished_import (
    source text not null,
    started_at timestamp not null default (now() at time zone 'utc'),
    copied jsonb not null default '{}')`.execute(kysely);
  await sql`insert into unfinished_import (source) values (${source})`.execute(kysely);
}

/** To be committed together with the rows. */
export async function recordCopied({ kysely }: Target, table: keyof Tables, last: readonly number[]): Promise<void> {
  await sql`update unfinished_import set copied = copied || ${JSON.stringify({ [table]: last })}::jsonb`.execute(
    kysely,
  );
}

/** Notes that nothing is copied any more. To be committed with the removal of the rows. */
export async function forgetCopied({ kysely }: Target): Promise<void> {
  await sql`update unfinished_import set copied = '{}'`.execute(kysely);
}

/** Notes that the import is finished, and leaves no trace of it. */
export async function endImport({ kysely }: Target): Promise<void> {
  await sql`drop table unfinished_import`.execute(kysely);
}
