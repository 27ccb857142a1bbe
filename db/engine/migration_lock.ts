import { Kysely, PostgresDialect, sql } from 'kysely';
import type pg from 'pg';

/**
 * Runs work while no other process migrates the database.
 *
 * The lock has a connection of its own, so a single other connection is enough for the work.
 */
export type WithMigrationLock = <T>(work: () => Promise<T>) => Promise<T>;

/** The number of Kysely's own lock, which earlier releases take. */
const number = 3853314791062309107n;

/**
 * The lock on a PostgreSQL server. It belongs to a transaction, so that a pooler in transaction mode carries it.
 *
 * @param pool for the lock alone; one connection is enough
 */
export function migrationLockOn(pool: pg.Pool): WithMigrationLock {
  const kysely = new Kysely({ dialect: new PostgresDialect({ pool }) });
  return (work) =>
    kysely.transaction().execute(async (trx) => {
      await sql`select pg_advisory_xact_lock(${sql.lit(number)})`.execute(trx);
      return work();
    });
}
