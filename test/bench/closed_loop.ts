/** When a loop ends: no operation begins after that time, or after that number of operations. */
export type Bounds = { readonly durationMs: number; readonly most?: number };

/** The result of a closed loop: the time of each operation in milliseconds, and the time of all of them together. */
export type Timing = { readonly timesMs: readonly number[]; readonly elapsedMs: number };

/**
 * Runs an operation in a closed loop: each caller begins its next operation as soon as the last one is done.
 *
 * @param callers what each caller works with, such as a connection
 */
export async function closedLoop<Caller>(
  callers: readonly Caller[],
  { durationMs, most = Number.POSITIVE_INFINITY }: Bounds,
  operation: (caller: Caller, call: number) => Promise<void>,
): Promise<Timing> {
  const timesMs: number[] = [];
  let begun = 0;
  const started = performance.now();
  const loop = async (caller: Caller): Promise<void> => {
    let now = started;
    while (begun < most && (now < started + durationMs || begun < callers.length)) {
      const call = begun;
      begun += 1;
      await operation(caller, call);
      const ended = performance.now();
      timesMs.push(ended - now);
      now = ended;
    }
  };
  await Promise.all(callers.map(loop));
  return { timesMs, elapsedMs: performance.now() - started };
}

/** The value that the part `share` (0 to 1) of the figures does not exceed. NaN if there are no figures. */
export function quantile(figures: readonly number[], share: number): number {
  const sorted = figures.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The middle figure, or the mean of the two in the middle. */
export function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((left, right) => left - right);
  const middle = sorted.length >> 1;
  const [below = Number.NaN, above = Number.NaN] = sorted.slice(middle - 1 + (sorted.length % 2), middle + 1);
  return sorted.length % 2 === 1 ? below : (below + above) / 2;
}
