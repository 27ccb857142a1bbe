import { isLostRace } from './sqlstate.ts';

/** The server takes about a second to detect each deadlock. */
const attempts = 10;

/**
 * Repeats an operation that the server ended because of a deadlock or a serialization failure, and that so changed
 * nothing. While a migration runs, which locks one table after the other, this also happens to reads, and to the
 * migration itself.
 *
 * @param operation one transaction
 * @throws any other error of the operation, and the error of the last attempt.
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
