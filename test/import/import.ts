import assert from 'node:assert/strict';
import pg from 'pg';
import { type Ended, startCommand } from '../manage/commands.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase, type FreshDatabase } from '../support/postgresql.ts';
import { passwordSpellings } from './mariadb.ts';

/** An empty PostgreSQL database, and a connection to it. */
export type TargetDatabase = FreshDatabase & { readonly sql: pg.Client };

/** Calls back with an empty database, and drops it at the end. */
export async function withTarget(use: (target: TargetDatabase) => Promise<void>): Promise<void> {
  const database = await createDatabase(await postgresqlServer());
  const sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
  try {
    await use({ ...database, sql });
  } finally {
    await sql.end();
    await database.drop();
  }
}

/** Starts `placement-manage import --from URL`. */
export const startImport = (source: string, { url }: TargetDatabase) =>
  startCommand('placement-manage', ['import', '--from', source], '/', { DATABASE_URL: url });

/** Runs the import to its end, and checks that it does not print the password. */
export async function importFrom(source: string, target: TargetDatabase): Promise<Ended> {
  const ended = await startImport(source, target).ended;
  for (const spelling of passwordSpellings) assert.ok(!`${ended.stdout}${ended.stderr}`.includes(spelling));
  return ended;
}
