import { setTimeout as sleep } from 'node:timers/promises';
import type { RawBuilder } from 'kysely';
import type { Database } from '../connect.ts';
import { hasSqlstate, sqlstate } from '../sqlstate.ts';

/** Well below PostgreSQL's deadlock_timeout (1 s): it is always the migration that gives way, never a request. */
const lockTimeoutMs = 100;
const attempts = 100;

/**
 * Runs one statement of a migration in a transaction that waits for a lock only briefly: on the way to a deadlock with a
 * request it lets go of all its locks, and begins again.
 *
 * @throws the last refusal where other transactions hold the rows for longer than some ten seconds.
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
