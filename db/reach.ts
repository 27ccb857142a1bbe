import { sql } from 'kysely';
import { type Database, isDatabaseError } from './connect.ts';

/** A server that answers so will take connections later: too many, shutting down, crashed, starting up. */
const passing = ['53300', '57P01', '57P02', '57P03'];

/**
 * Waits until the database answers.
 *
 * @param retries how often it is tried again; -1 without end
 * @param wait is told of each attempt that failed, and says when to go on
 * @throws the last failure, and at once one that time does not mend, such as a wrong password.
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
      const hopeless = isDatabaseError(error) && !passing.includes(error.code);
      if (hopeless || attempt === retries) throw error;
      await wait(failureOf(error), attempt + 1);
    }
  }
}

/** Why the database could not be reached, in words. Node joins the failures of several addresses in one without any. */
export function failureOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map((each: unknown) => failureOf(each)).join(', ');
  }
  return error instanceof Error ? error.message : String(error);
}
