/** What a measured load came to. */
export type Measurement = {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly count: number;
};

/**
 * Runs an operation in a closed loop: `concurrency` callers, each calling again as soon as it has its answer, for a time
 * after a short warm-up.
 */
export async function measure(
  concurrency: number,
  durationMs: number,
  operation: (call: number) => Promise<void>,
): Promise<Measurement> {
  let call = 0;
  await loop(concurrency, durationMs / 4, () => operation(call++));
  const started = performance.now();
  const timesMs = await loop(concurrency, durationMs, () => operation(call++));
  const elapsedMs = performance.now() - started;
  timesMs.sort((a, b) => a - b);
  const quantile = (part: number): number =>
    timesMs[Math.min(timesMs.length - 1, Math.floor(timesMs.length * part))] ?? 0;
  return {
    perSecond: (timesMs.length * 1000) / elapsedMs,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    count: timesMs.length,
  };
}

async function loop(concurrency: number, durationMs: number, operation: () => Promise<void>): Promise<number[]> {
  const timesMs: number[] = [];
  const end = performance.now() + durationMs;
  const caller = async (): Promise<void> => {
    do {
      const begun = performance.now();
      await operation();
      timesMs.push(performance.now() - begun);
    } while (performance.now() < end);
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  return timesMs;
}
