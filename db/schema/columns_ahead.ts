import { setTimeout as sleep } from 'node:timers/promises';
import { type QueryExecutorProvider, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../engine/sqlstate.ts';

/** Columns that a migration adds to a table into which every request writes, with their types. They may be null. */
export type Columns = { readonly table: string; readonly columns: Readonly<Record<string, string>> };

/**
 * How long writers wait at most while the columns are added, in milliseconds: `alter table` waits for the open transactions that
 * have written to the table, and all later ones wait behind it.
 */
const lockTimeoutMs = 100;
/** How long other writers have the table before it is tried again, in milliseconds. */
const pauseMs = 400;

/**
 * Adds the columns of a migration before that migration runs, each attempt in a transaction of its own that waits for its lock for a
 * short time only. It is repeated until the transactions that write to the table let it through. Where the table does not exist yet,
 * nothing is done, and the migration adds the columns.
 */
export async function addColumnsPatiently({ patient }: Pick<Database, 'patient'>, columns: Columns): Promise<void> {
  for (;;) {
    try {
      await patient.transaction().execute(async (trx) => {
        await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(trx);
        await addColumnsAhead(trx, columns);
      });
      return;
    } catch (error) {
      if (!hasSqlstate(error, sqlstate.lockNotAvailable)) throw error;
      await sleep(pauseMs);
    }
  }
}

/** Adds those of the columns that a table lacks. Where it has all, no lock is taken; `add column if not exists` would take one. */
export async function addColumnsAhead(db: QueryExecutorProvider, { table, columns }: Columns): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select attname as name from pg_attribute where attrelid = to_regclass(${table}) and not attisdropped`.execute(db);
  const missing = Object.entries(columns).filter(([name]) => !rows.some((row) => row.name === name));
  if (rows.length === 0 || missing.length === 0) return;
  const clauses = missing.map(([name, type]) => sql`add column ${sql.id(name)} ${sql.raw(type)}`);
  await sql`alter table ${sql.table(table)} ${sql.join(clauses)}`.execute(db);
}
