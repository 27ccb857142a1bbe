import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionError } from './errors.ts';

/** How a request is repeated that something passing prevented. */
export type RepeatOptions = {
  /** Milliseconds for everything together. */
  readonly deadlineMs: number;
  /** How often it is tried at most. */
  readonly attempts: number;
  readonly signal?: AbortSignal | undefined;
};

/** What came of one attempt: a result, or a failure after which another may be made. */
export type Attempt<Result> =
  | { readonly done: Result }
  /** `afterMs` is how long the server asks to wait. */
  | { readonly failed: () => Result; readonly afterMs?: number };

/** The wait before the second attempt is up to this, and doubles with each further one, up to the longest. */
const firstWaitMs = 100;
const longestWaitMs = 5_000;

/**
 * Makes attempts until one is done, there were enough, or the deadline is near, and then gives what the last one came to. Waits
 * are random between nothing and a bound that doubles, so that clients that failed together do not come back together.
 *
 * @param attempt is told its number, from 1 on, and a signal that ends it with the call
 * @throws what attempts throw, the reason of `signal`, or ConnectionError where the deadline interrupts an attempt.
 */
export async function repeatedly<Result>(
  attempt: (number: number, signal: AbortSignal) => Promise<Attempt<Result>>,
  { deadlineMs, attempts, signal }: RepeatOptions,
): Promise<Result> {
  const endsAtMs = performance.now() + deadlineMs;
  const deadline = AbortSignal.timeout(deadlineMs);
  const both = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  for (let number = 1; ; number++) {
    let outcome: Attempt<Result>;
    try {
      signal?.throwIfAborted();
      outcome = await attempt(number, both);
    } catch (error) {
      if (!deadline.aborted || signal?.aborted || error !== both.reason) throw error;
      throw new ConnectionError(
        `No answer within ${deadlineMs} ms. Allow more by deadlineMs, or find out what keeps the server.`,
        { unsent: false, cause: error },
      );
    }
    if ('done' in outcome) return outcome.done;
    const jitterMs = Math.random() * Math.min(longestWaitMs, firstWaitMs * 2 ** (number - 1));
    const waitMs = Math.max(outcome.afterMs ?? 0, jitterMs);
    if (number >= attempts || performance.now() + waitMs >= endsAtMs) return outcome.failed();
    await sleep(waitMs, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
  }
}
