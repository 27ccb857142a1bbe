import { setTimeout as sleep } from 'node:timers/promises';
import type { QueryExecutorProvider } from 'kysely';
import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../engine/sqlstate.ts';

/**
 * How long an attempt waits for its locks, in milliseconds. While it waits for open transactions that wrote to the
 * table, all later writers wait behind it.
 */
const lockTimeoutMs = 100;
/** How long other writers have the table between two attempts, in milliseconds. */
const pauseMs = 400;

/**
 * Changes a table into which every request writes, before the migrations begin. Each attempt is a transaction of its
 * own, which waits for its locks only for a short time. Attempts are repeated until one gets the locks.
 */
export async function changePatiently(
  { patient }: Pick<Database, 'patient'>,
  change: (db: QueryExecutorProvider) => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      await patient.transaction().execute(async (trx) => {
        await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(trx);
        await change(trx);
      });
      return;
    } catch (error) {
      if (!hasSqlstate(error, sqlstate.lockNotAvailable)) throw error;
      await sleep(pauseMs);
    }
  }
}
