import type { Database } from '../../db/engine/connect.ts';
import { newerMigrations, newerSchema, olderSchema, pendingMigrations } from '../../db/schema/migrate.ts';
import { hasTable } from '../../db/schema/missing_table.ts';
import { unwatchedTablesProblem } from '../../db/schema/watched_tables.ts';

/** How the schema of a database differs from the schema of this release, with the remedy. */
export type SchemaProblem = { readonly is: 'empty' | 'older' | 'newer' | 'unwatched'; readonly problem: string };

/** @returns undefined if the schema is that of this release */
export async function schemaProblem(database: Database): Promise<SchemaProblem | undefined> {
  if (!(await hasTable(database, 'resource_providers'))) {
    return { is: 'empty', problem: 'The database has no tables yet. Run "placement-manage db sync".' };
  }
  const pending = await pendingMigrations(database);
  if (pending.length > 0) return { is: 'older', problem: olderSchema(pending) };
  const newer = await newerMigrations(database);
  if (newer.length > 0) return { is: 'newer', problem: newerSchema(newer) };
  const problem = await unwatchedTablesProblem(database);
  return problem === undefined ? undefined : { is: 'unwatched', problem };
}
