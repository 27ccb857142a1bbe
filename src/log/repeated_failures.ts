import type { Logger } from 'pino';

/** Logs the reason why requests fail, however many fail: at the beginning, once a minute, and at the end. */
export type RepeatedFailures = {
  /**
   * Takes note that something failed.
   *
   * @param line what is logged
   * @param of.name what the line about the end calls it; default: the line
   * @param of.reason why it failed this time, in the words of the program that said so
   * @param of.lasts whether only `over` ends it; otherwise a minute without such a failure ends it, too
   */
  failed(line: string, of?: { readonly name?: string; readonly reason?: string; readonly lasts?: boolean }): void;
  /** Logs once the end of these failures, if they began before a request was sent that has now succeeded. */
  over(lines: readonly string[], said: string, sentMs: number): void;
};

/** How many different lines are remembered. */
const mostRemembered = 100;

type Going = {
  readonly beganMs: number;
  readonly quiet: NodeJS.Timeout | undefined;
  lastMs: number;
  loggedMs: number;
  /** How many failures there were, in total and since the last line. */
  failures: number;
  unlogged: number;
};

/** @param minuteMs for tests: what counts as a minute */
export function openRepeatedFailures(logger: Pick<Logger, 'info' | 'warn'>, minuteMs = 60_000): RepeatedFailures {
  const going = new Map<string, Going>();

  function forget(line: string): void {
    clearTimeout(going.get(line)?.quiet);
    going.delete(line);
  }

  function end(line: string, said: string, endedMs: number): void {
    const { beganMs, failures } = going.get(line) ?? { beganMs: endedMs, failures: 0 };
    forget(line);
    logger.info({ seconds: Math.round((endedMs - beganMs) / 100) / 10, failures }, said);
  }

  function begin(line: string, nowMs: number, { name = line, lasts = false }): void {
    const times = { beganMs: nowMs, lastMs: nowMs, loggedMs: nowMs };
    const isOver = () => end(line, `Nothing failed for this reason for a minute: ${name}`, one.lastMs);
    const quiet = lasts ? undefined : setTimeout(isOver, minuteMs).unref();
    const one: Going = { ...times, quiet, failures: 1, unlogged: 0 };
    going.set(line, one);
    const [oldest = ''] = going.keys();
    if (going.size > mostRemembered) forget(oldest);
  }

  return {
    failed: (line, { reason, ...of } = {}) => {
      const nowMs = performance.now();
      const one = going.get(line);
      if (one === undefined) {
        begin(line, nowMs, of);
        logger.warn({ reason }, line);
        return;
      }
      one.quiet?.refresh();
      one.lastMs = nowMs;
      one.failures += 1;
      one.unlogged += 1;
      if (nowMs - one.loggedMs < minuteMs) return;
      logger.warn({ reason, again: one.unlogged }, line);
      one.loggedMs = nowMs;
      one.unlogged = 0;
    },
    over: (lines, said, sentMs) => {
      const [first, ...others] = lines.filter((line) => (going.get(line)?.beganMs ?? sentMs) < sentMs);
      if (first === undefined) return;
      for (const line of others) forget(line);
      end(first, said, performance.now());
    },
  };
}
