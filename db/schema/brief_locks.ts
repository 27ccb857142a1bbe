import { setTimeout as sleep } from 'node:timers/promises';
import type { QueryExecutorProvider } from 'kysely';
import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../engine/sqlstate.ts';

/**
 * How long writers wait at most, in milliseconds: a change of a table waits for the open transactions that have written to it, and
 * all later ones wait behind it.
 */
const lockTimeoutMs = 100;
/** How long other writers have the table before it is tried again, in milliseconds. */
const pauseMs = 400;

/**
 * Changes a table into which every request writes, before the migrations begin. Each attempt is a transaction of its own, which waits
 * for its locks for a short time only. It is repeated until the transactions that write to the table let it through.
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
