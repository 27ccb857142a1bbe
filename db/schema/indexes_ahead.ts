import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';

/** An index that a migration adds to a table that may be large. */
export type Index = {
  readonly name: string;
  readonly table: string;
  /** Columns that the table of an older release may lack. */
  readonly needs: readonly string[];
  /** The indexed columns and expressions, as SQL. */
  readonly keys: string;
};

type State = {
  /** Whether the table exists and has the columns. */
  readonly isPossible: boolean;
  readonly isThere: boolean;
  /**
   * Whether queries can use the index. They cannot while it is built, nor after a process that built it was stopped.
   */
  readonly isValid: boolean;
  /** Whether a process builds an index of the table at the moment. */
  readonly isBuilding: boolean;
};

/** How long to wait, in milliseconds, before checking again whether another process has built the index. */
const pauseMs = 200;

/**
 * Builds the indexes of a migration before that migration runs, without blocking writes. PostgreSQL can do so only
 * outside of transactions, and migrations run in one. The migration then finds the indexes. If the process is stopped,
 * this can be repeated: a half built index is dropped and built again. An index whose table does not exist yet, or
 * lacks a column, is left to the migration.
 *
 * It waits until all open transactions have ended, and blocks none of them.
 */
export async function buildIndexesAhead(database: Database, indexes: readonly Index[]): Promise<void> {
  for (const index of indexes) await buildAhead(database, index);
}

/** Builds the indexes of a migration in it, where they are not there yet. This blocks writes. */
export async function buildMissingIndexes(db: Kysely<unknown>, indexes: readonly Index[]): Promise<void> {
  for (const { name, table, keys } of indexes) {
    // `create index if not exists` cannot be used: it requests its lock even if the index exists, and blocks writes.
    const { rows } = await sql`select where to_regclass(${name}) is null`.execute(db);
    if (rows.length > 0) await sql`create index ${sql.id(name)} on ${sql.table(table)} (${sql.raw(keys)})`.execute(db);
  }
}

async function buildAhead({ patient }: Pick<Database, 'patient'>, index: Index): Promise<void> {
  const { name, table, keys } = index;
  for (;;) {
    const { isPossible, isThere, isValid, isBuilding } = await stateOf(patient, index);
    if (!isPossible || isValid) return;
    // Two processes that build indexes of one table would each wait until the other's snapshot ends: a deadlock.
    if (isBuilding) await sleep(pauseMs);
    else if (isThere) await sql`drop index concurrently if exists ${sql.id(name)}`.execute(patient);
    else {
      await sql`create index concurrently if not exists ${sql.id(name)} on ${sql.table(table)} (${sql.raw(keys)})`.execute(
        patient,
      );
    }
  }
}

const stateOf = (patient: Database['patient'], { name, table, needs }: Index): Promise<State> =>
  onlyRow(
    patient,
    sql<State>`select
      to_regclass(${table}) is not null and (select count(*) from pg_attribute where attrelid = to_regclass(${table}) and attname = any(${needs}::text[])
        and not attisdropped) = ${sql.lit(needs.length)} as "isPossible",
      to_regclass(${name}) is not null as "isThere",
      exists (select from pg_index where indexrelid = to_regclass(${name}) and indisvalid) as "isValid",
      exists (select from pg_stat_progress_create_index where relid = to_regclass(${table})) as "isBuilding"`,
  );
