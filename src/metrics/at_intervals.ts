/**
 * A scrape comes some milliseconds early or late. A result that is this much of the interval old is made again, so that each
 * scrape at the interval has a new one.
 */
const oldEnough = 0.9;

/**
 * Makes a result at most once in an interval: calls in between, and those while it is made, get the same one. One that failed is
 * made again by the next call.
 *
 * @param intervalMs 0 for a result of its own for each call that comes after the one before has ended
 */
export function atIntervals<Result, Args extends readonly unknown[]>(
  intervalMs: number,
  make: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  let last: { readonly begunMs: number; readonly result: Promise<Result> } | undefined;
  let isUnderWay = false;
  return (...args) => {
    const nowMs = performance.now();
    if (last !== undefined && (isUnderWay || nowMs - last.begunMs < intervalMs * oldEnough)) return last.result;
    isUnderWay = true;
    const result = make(...args);
    last = { begunMs: nowMs, result };
    result.then(
      () => {
        isUnderWay = false;
      },
      () => {
        isUnderWay = false;
        last = undefined;
      },
    );
    return result;
  };
}
