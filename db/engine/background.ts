import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Work that is done in rounds, beside the requests. A round begins only when the round before has ended: after a round that took longer
 * than the interval, the next round begins at the next multiple of the interval. The first round begins after half an interval to a whole
 * one, so that processes that start together do not work at the same time. The process may end between two rounds.
 *
 * @param work.everyMs from the beginning of a round to the beginning of the next one
 * @param work.failed called with the error of a round; the next round comes nevertheless
 * @param work.round has to end soon after `stopping` is aborted
 * @returns a function that stops the rounds, and resolves when no round is under way
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

/** Pauses a long round, so that requests can use the database. The pause ends early when the rounds are stopped. */
export const rest = (ms: number, stopping?: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { ref: false, ...(stopping === undefined ? {} : { signal: stopping }) }).catch(() => {});
