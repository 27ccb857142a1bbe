import { concurrentUpdate } from './errors.ts';

/**
 * How often a request is judged whose client sends no generation. After this many attempts in a row, other requests change the data
 * faster than this request can be judged and written.
 */
const mostAttempts = 32;

/** When the attempts end without success. */
type End = {
  /** How many attempts are made at most. */
  readonly attempts?: number | undefined;
  /** The error after the last one; without it a 409. */
  readonly lostRace?: (() => Error) | undefined;
};

/**
 * Repeats an attempt to judge and write a request, or to read data of one snapshot, until it succeeds or is refused.
 *
 * @param attempt gets the number of earlier attempts; resolves with undefined if another request has changed the data meanwhile
 * @throws what `attempt` throws, or the error after the last attempt
 */
export async function untilDone<Done>(
  attempt: (made: number) => Promise<Done | undefined>,
  { attempts = mostAttempts, lostRace = concurrentUpdate }: End = {},
): Promise<Done> {
  for (let made = 0; made < attempts; made += 1) {
    const done = await attempt(made);
    if (done !== undefined) return done;
  }
  throw lostRace();
}
