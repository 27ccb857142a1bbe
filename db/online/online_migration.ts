import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../engine/failures.ts';

/** What one batch of an online data migration did. */
export type Progress = {
  /** The rows that need migration, at most as many as the batch may migrate, plus the rows that cannot be migrated. */
  readonly found: number;
  readonly done: number;
};

/**
 * A migration of old data that runs in small batches while the service runs. It is idempotent. It remembers where its
 * last batch ended, so use one object for all batches of a run.
 */
export type OnlineMigration = {
  readonly name: string;
  /** @param maxCount how many rows the batch may migrate, 1 or more. */
  runBatch(maxCount: number): Promise<Progress>;
};

/** A number below all ids, where a pass over a table begins. Ids may be below zero, down to the lowest number that their column takes. */
export const beforeAllIds = Number.MIN_SAFE_INTEGER;

/** An id, or `beforeAllIds`, as a value that is compared with ids. */
export const idOf = (id: number): RawBuilder<number> => sql`${id}::bigint`;

/**
 * Well below PostgreSQL's deadlock_timeout (1 s): so in a deadlock the migration's statement ends first, never a
 * request's.
 */
const lockTimeoutMs = 100;
const attempts = 100;

/**
 * Runs a statement of a migration, and statements that follow it, in a transaction that waits for a lock only briefly. If it does not get the
 * lock, it releases all its locks and is repeated, so that a deadlock with a request cannot last.
 *
 * @returns the rows of the first statement
 * @throws the last error if other transactions hold the rows for longer than some ten seconds.
 */
export async function givingWay<Row>(
  database: Database,
  statement: RawBuilder<Row>,
  ...following: readonly RawBuilder<unknown>[]
): Promise<readonly Row[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const [rows] = await database.transaction([statement, ...following], { lockTimeoutMs });
      return rows;
    } catch (error) {
      const lost = [sqlstate.lockNotAvailable, sqlstate.deadlockDetected, sqlstate.serializationFailure];
      if (attempt === attempts || !hasSqlstate(error, ...lost)) throw error;
      await sleep(5);
    }
  }
}
