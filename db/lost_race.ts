import { isLostRace } from './sqlstate.ts';

/** Each takes the server about a second to find. */
const attempts = 10;

/**
 * Repeats an operation that lost a deadlock, and so changed nothing: beside a migration, which locks one table after the other,
 * that happens to reads, too, and to the migration itself.
 *
 * @param operation one transaction
 * @throws what it throws otherwise, or at the last attempt.
 */
export async function repeatLostRaces<T>(operation: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await operation();
    } catch (error) {
      if (!isLostRace(error) || attempt === attempts) throw error;
    }
  }
}
