import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Connect } from './connection.ts';
import { kyselyOn } from './driver.ts';

/**
 * Runs work while no other process migrates the database.
 *
 * The lock has a separate connection, so the work needs only one more connection.
 */
export type WithMigrationLock = <T>(work: () => Promise<T>) => Promise<T>;

/** The time between two attempts to take the lock, in milliseconds. */
const pauseMs = 100;

/** The number of Kysely's own lock, which earlier releases take. */
const number = 3853314791062309107n;

/**
 * The lock on a PostgreSQL server. It belongs to a transaction, so that it works behind a pooler in transaction mode. The lock is requested
 * again and again: a statement that waits for it would have a snapshot, and a process that has the lock and builds an index concurrently
 * waits for all older snapshots.
 *
 * @param connect lends a connection for the lock alone
 */
export function migrationLockOn(connect: Connect): WithMigrationLock {
  const kysely = kyselyOn(connect);
  return (work) =>
    kysely.transaction().execute(async (trx) => {
      const taken = sql`select where pg_try_advisory_xact_lock(${sql.lit(number)})`;
      while ((await taken.execute(trx)).rows.length === 0) await sleep(pauseMs);
      return work();
    });
}
