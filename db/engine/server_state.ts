import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { failureOf } from './failures.ts';
import { isDatabaseError, isPassing } from './sqlstate.ts';

/**
 * Waits until the database answers.
 *
 * @param retries how many attempts follow the first one; -1 means no limit
 * @param wait called after each failed attempt; the next attempt begins when it resolves
 * @throws the error of the last attempt, and at once an error that a retry cannot mend, such as a wrong password.
 */
export async function reach(
  { kysely }: Database,
  retries: number,
  wait: (reason: string, attempt: number) => Promise<void>,
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await sql`select 1`.execute(kysely);
      return;
    } catch (error) {
      const hopeless = isDatabaseError(error) && !isPassing(error);
      if (hopeless || attempt === retries) throw error;
      await wait(failureOf(error), attempt + 1);
    }
  }
}

/**
 * Makes sure that the database takes writes. The statement is refused where a write would be, and locks no row.
 *
 * @throws `readOnlyTransaction` where it takes none, `insufficientPrivilege` where the role may not write, and any error of a
 *   database that cannot be reached
 */
export async function requireWritable({ transaction }: Pick<Database, 'transaction'>): Promise<void> {
  await transaction([sql`select from provider_changes where false for update`]);
}
