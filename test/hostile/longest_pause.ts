/** How long the event loop stood still, at most, and how long the work took: CPU time of this thread, in milliseconds. */
export type Pause = { readonly longestMs: number; readonly totalMs: number };

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/**
 * Does work, and sees how long others had to wait for their turn at most. It is CPU time, so that a machine which does other work
 * meanwhile does not count.
 */
export async function longestPause<Result>(work: () => Promise<Result>): Promise<Pause & { readonly result: Result }> {
  let isOver = false;
  let longestMs = 0;
  const startedMs = cpuMs();
  let lastMs = startedMs;
  const look = (): void => {
    const nowMs = cpuMs();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  try {
    const result = await work();
    look();
    return { longestMs, totalMs: cpuMs() - startedMs, result };
  } finally {
    isOver = true;
  }
}
