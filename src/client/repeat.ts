import { ConnectionError } from './errors.ts';
import { pause } from './send.ts';

/** How a request is repeated after a temporary failure. */
export type RepeatOptions = {
  /** Milliseconds for all attempts together; Infinity for no deadline. */
  readonly deadlineMs: number;
  /** The largest number of attempts. */
  readonly attempts: number;
  /** Milliseconds after which no further attempt begins. Default: `deadlineMs`. */
  readonly repeatMs?: number;
  /** The longest wait before an attempt, in milliseconds, unless the server requests a longer one. Default: 5,000. */
  readonly longestWaitMs?: number;
  readonly signal?: AbortSignal | undefined;
};

/** The outcome of one attempt: a result, or a failure that allows another attempt. */
export type Attempt<Result> =
  | { readonly done: Result }
  /** `afterMs` is the wait that the server requests. */
  | { readonly failed: () => Result; readonly afterMs?: number };

/** The longest wait of a timer of Node.js in milliseconds, 24.8 days. A timer with a longer wait fires at once. */
export const longestTimerMs = 2 ** 31 - 1;

/** A signal for the end of a time, also of a fraction of a millisecond or one that is over; undefined for one that no timer takes. */
export const timeoutSignal = (durationMs: number): AbortSignal | undefined =>
  durationMs > longestTimerMs ? undefined : AbortSignal.timeout(Math.max(0, Math.ceil(durationMs)));

/** The longest wait before the second attempt. It doubles with each further attempt, up to `longestWaitMs`. */
const firstWaitMs = 100;

/**
 * Makes attempts until one succeeds, their number is reached, or the deadline is near, and returns the outcome of the
 * last one. A wait is random between zero and a bound that doubles, so that clients that failed together do not return
 * together.
 *
 * @param attempt gets its number, from 1 on, and a signal that aborts it together with the call
 * @throws the errors of attempts, the reason of `signal`, or ConnectionError if the deadline interrupts an attempt
 */
export async function repeatedly<Result>(
  attempt: (number: number, signal: AbortSignal) => Promise<Attempt<Result>>,
  { deadlineMs, attempts, repeatMs = deadlineMs, longestWaitMs = 5_000, signal }: RepeatOptions,
): Promise<Result> {
  const endsAtMs = performance.now() + repeatMs;
  const deadline = timeoutSignal(deadlineMs);
  const both = AbortSignal.any([signal, deadline].filter((each) => each !== undefined));
  for (let number = 1; ; number++) {
    let outcome: Attempt<Result>;
    try {
      signal?.throwIfAborted();
      outcome = await attempt(number, both);
    } catch (error) {
      if (!deadline?.aborted || signal?.aborted || error !== both.reason) throw error;
      throw new ConnectionError(
        `No answer within ${deadlineMs} ms: the server or the network is slow, or does not answer. Programs allow more by deadlineMs.`,
        { unsent: false, cause: error },
      );
    }
    if ('done' in outcome) return outcome.done;
    const jitterMs = Math.random() * Math.min(longestWaitMs, firstWaitMs * 2 ** (number - 1));
    const waitMs = Math.min(longestTimerMs, Math.max(outcome.afterMs ?? 0, jitterMs));
    if (number >= attempts || performance.now() + waitMs >= endsAtMs) return outcome.failed();
    await pause(waitMs, signal);
  }
}
