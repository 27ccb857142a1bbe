import { setTimeout as sleep } from 'node:timers/promises';
import { type QueryExecutorProvider, sql } from 'kysely';
import { hasSqlstate, isTimedOut, sqlstate } from '../engine/failures.ts';

/*
 * How migrations lock tables that are read and written meanwhile. While a transaction waits for a lock, all later readers or writers of
 * the table wait behind it. So an attempt waits only for a short time, and requests have the table between two attempts.
 */

/** How long an attempt waits for its locks, in milliseconds. */
const lockTimeoutMs = 100;
/** How long requests have the tables between two attempts, in milliseconds. */
const pauseMs = 400;

/**
 * Repeats an attempt until it gets its locks, however long other transactions hold them.
 *
 * @param attempt one transaction, which begins with `waitBriefly`
 * @throws any other error of the attempt
 */
export async function repeatUntilLocked<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!hasSqlstate(error, sqlstate.lockNotAvailable)) throw error;
      await sleep(pauseMs);
    }
  }
}

/** Lets the transaction wait only for a short time for each lock. */
export async function waitBriefly(trx: QueryExecutorProvider): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(trx);
}

/**
 * Locks several tables that a migration changes. The wait for all of them together is as long as for a single lock: locked one after the
 * other, the first tables would be locked while the migration waits for the last ones. So a migration calls it late, after all work that
 * needs no lock.
 *
 * If the transaction does not wait briefly, since no other process uses the database, nothing is done.
 *
 * @throws an error of the code `lockNotAvailable` if a lock was not granted in time
 */
export async function lockTogether(
  trx: QueryExecutorProvider,
  tables: readonly string[],
  mode: 'share row exclusive' | 'access exclusive',
): Promise<void> {
  const brief = await sql`select where current_setting('lock_timeout') <> '0'`.execute(trx);
  if (brief.rows.length === 0) return;
  await sql`set local statement_timeout = ${sql.lit(lockTimeoutMs)}`.execute(trx);
  try {
    await sql`lock table ${sql.join(tables.map((table) => sql.table(table)))} in ${sql.raw(mode)} mode`.execute(trx);
  } catch (error) {
    if (!isTimedOut(error)) throw error;
    const refused = { code: sqlstate.lockNotAvailable, severity: 'ERROR' };
    throw Object.assign(new Error('The locks of the tables were not granted in time.', { cause: error }), refused);
  }
  await sql`set local statement_timeout = 0`.execute(trx);
}
