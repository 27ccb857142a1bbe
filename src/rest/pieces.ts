import { setImmediate as otherWork } from 'node:timers/promises';

/** Work in small pieces: it can stop at each `yield`, so that other requests are served meanwhile. */
export type Pieces<Result> = Generator<undefined, Result>;

/** How long work goes on before others have a turn, in milliseconds. */
const turnMs = 10;

/**
 * Does work in pieces.
 *
 * @param signal ends the work early, such as where the client has left. @throws its reason then
 */
export async function inPieces<Result>(work: Pieces<Result>, signal?: AbortSignal): Promise<Result> {
  let turnEndsMs = performance.now() + turnMs;
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    if (performance.now() < turnEndsMs) continue;
    await otherWork();
    signal?.throwIfAborted();
    turnEndsMs = performance.now() + turnMs;
  }
}
