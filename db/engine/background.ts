import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Work that is done in rounds, beside the requests. A round begins only when the one before has ended: after a round that took longer
 * than the interval, the next one begins at the next multiple of it. The first round begins after half an interval to a whole one, so
 * that processes that start together do not work at the same time. The process may end between two rounds.
 *
 * @param work.everyMs from the beginning of a round to the beginning of the next one
 * @param work.failed called with what a round has thrown; the next round comes nevertheless
 * @param work.round has to end soon after `stopping` is aborted
 * @returns a function that stops the rounds, and resolves when none is under way
 */
export function inBackground(work: {
  readonly everyMs: number;
  readonly failed: (error: unknown) => void;
  readonly round: (stopping: AbortSignal) => Promise<void>;
}): () => Promise<void> {
  const { everyMs, failed, round } = work;
  const stopping = new AbortController();
  let running = Promise.resolve();
  const begin = async (): Promise<void> => {
    const startedMs = performance.now();
    await round(stopping.signal).catch(failed);
    if (!stopping.signal.aborted) beginIn(everyMs - ((performance.now() - startedMs) % everyMs));
  };
  const beginIn = (ms: number): void => {
    timer = setTimeout(() => {
      running = begin();
    }, ms).unref();
  };
  let timer: NodeJS.Timeout | undefined;
  beginIn(everyMs * (0.5 + Math.random() / 2));
  return () => {
    clearTimeout(timer);
    stopping.abort();
    return running;
  };
}

/** Lets others use the database during a long round. It ends early when the rounds are stopped. */
export const rest = (ms: number, stopping?: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { ref: false, ...(stopping === undefined ? {} : { signal: stopping }) }).catch(() => {});
