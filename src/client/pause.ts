/** Waits; in Node.js and in browsers. @throws the reason of the signal */
export function pause(durationMs: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.reject(signal.reason);
  const leave = () => reject(signal?.reason);
  const timer = setTimeout(resolve, durationMs);
  signal?.addEventListener('abort', leave, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  });
}
