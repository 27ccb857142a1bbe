/** How often the same trouble is logged at most, and how many different ones are remembered. */
const againMs = 60_000;
const mostRemembered = 100;

/**
 * Logs why tokens could not be validated: each reason once in a minute at most, and with how many requests met it since. While Keystone is
 * away every request with a new token does.
 */
export function openToldTroubles(say: (line: string) => void): (reason: string) => void {
  const told = new Map<string, { readonly atMs: number; unsaid: number }>();
  return (reason) => {
    const nowMs = performance.now();
    const last = told.get(reason);
    if (last !== undefined && nowMs - last.atMs < againMs) {
      last.unsaid += 1;
      return;
    }
    const more =
      last === undefined || last.unsaid === 0 ? '' : ` So it was for ${last.unsaid} more since the last such line.`;
    say(`A token could not be validated: ${reason}${more}`);
    told.delete(reason);
    told.set(reason, { atMs: nowMs, unsaid: 0 });
    const [oldest = ''] = told.keys();
    if (told.size > mostRemembered) told.delete(oldest);
  };
}
