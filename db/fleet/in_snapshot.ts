import { sql, type Transaction } from 'kysely';
import type { Database } from '../engine/connect.ts';
import type { Tables } from '../tables.ts';

/**
 * Reads in one transaction, in which every statement has the same snapshot.
 *
 * @param lockTimeoutMs how long a statement waits for a lock; without it there is no limit of its own
 * @throws `lockNotAvailable` if another transaction holds a lock for longer
 */
export const inSnapshot = <Result>(
  { patient }: Pick<Database, 'patient'>,
  read: (transaction: Transaction<Tables>) => Promise<Result>,
  lockTimeoutMs?: number,
): Promise<Result> =>
  patient
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (transaction) => {
      if (lockTimeoutMs !== undefined)
        await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(transaction);
      return await read(transaction);
    });
