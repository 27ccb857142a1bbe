import { setTimeout as sleep } from 'node:timers/promises';
import type { RawBuilder } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../engine/sqlstate.ts';

/**
 * Well below PostgreSQL's deadlock_timeout (1 s): so in a deadlock the migration's statement ends first, never a
 * request's.
 */
const lockTimeoutMs = 100;
const attempts = 100;

/**
 * Runs one statement of a migration in a transaction that waits for a lock only briefly. If it does not get the lock,
 * it releases all its locks and is repeated, so that a deadlock with a request cannot last.
 *
 * @throws the last error if other transactions hold the rows for longer than some ten seconds.
 */
export async function givingWay<Row>(database: Database, statement: RawBuilder<Row>): Promise<readonly Row[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const [rows] = await database.transaction([statement], { lockTimeoutMs });
      return rows;
    } catch (error) {
      const lost = [sqlstate.lockNotAvailable, sqlstate.deadlockDetected, sqlstate.serializationFailure];
      if (attempt === attempts || !hasSqlstate(error, ...lost)) throw error;
      await sleep(5);
    }
  }
}
