/**
 * Runs a function, one run at a time: calls during a run share one further run after it.
 *
 * @param work.failed called if a run throws; then nothing runs until the next call
 */
export function coalesceCalls({
  run,
  failed,
}: {
  readonly run: () => Promise<void>;
  readonly failed: () => void;
}): () => Promise<void> {
  let isUnderWay = false;
  let isCalled = false;
  return async () => {
    isCalled = true;
    if (isUnderWay) return;
    isUnderWay = true;
    try {
      while (isCalled) {
        isCalled = false;
        await run();
      }
    } catch {
      failed();
    } finally {
      isUnderWay = false;
    }
  };
}
