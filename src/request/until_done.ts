import { concurrentUpdate } from './errors.ts';

/**
 * How often a request is judged whose client names no generation. Each time another request has changed what it was judged by, so that
 * many in a row mean that others always come first.
 */
const mostAttempts = 32;

/** How it ends that an attempt is made in vain again and again. */
type End = {
  /** How many attempts are made at most. */
  readonly attempts?: number | undefined;
  /** The error after the last one; without it a 409. */
  readonly lostRace?: (() => Error) | undefined;
};

/**
 * Judges a request and writes it, or reads what belongs to one moment; again and again until that is done or refused.
 *
 * @param attempt resolves with undefined if another request has changed meanwhile what it was judged by; it gets the number of earlier attempts
 *   before it
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
