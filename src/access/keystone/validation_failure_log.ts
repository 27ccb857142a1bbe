/** How often the same reason is logged at most, and how many different reasons are remembered. */
const repeatedAfterMs = 60_000;
const mostRemembered = 100;

/**
 * Logs why tokens could not be validated: each reason once in a minute at most, with the number of requests that failed for it since. While
 * Keystone does not answer, every request with a new token fails.
 */
export function openValidationFailureLog(log: (line: string) => void): (reason: string) => void {
  const logged = new Map<string, { readonly atMs: number; unlogged: number }>();
  return (reason) => {
    const nowMs = performance.now();
    const last = logged.get(reason);
    if (last !== undefined && nowMs - last.atMs < repeatedAfterMs) {
      last.unlogged += 1;
      return;
    }
    const more =
      last === undefined || last.unlogged === 0
        ? ''
        : ` ${last.unlogged} more requests failed for this reason since the last such line.`;
    log(`A token could not be validated: ${reason}${more}`);
    logged.delete(reason);
    logged.set(reason, { atMs: nowMs, unlogged: 0 });
    const [oldest = ''] = logged.keys();
    if (logged.size > mostRemembered) logged.delete(oldest);
  };
}
