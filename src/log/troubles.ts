import type { Logger } from 'pino';

/** Logs what many requests meet for the same reason: when it begins, once a minute while it goes on, and when it is over. */
export type Troubles = {
  /**
   * Takes note that something failed.
   *
   * @param line what is logged
   * @param of.name what the line about the end calls it; default: the line
   * @param of.reason why it failed this time, in the words of the program that said so
   * @param of.lasts whether only `over` ends it; otherwise a minute in which nothing met it does
   */
  met(line: string, of?: { readonly name?: string; readonly reason?: string; readonly lasts?: boolean }): void;
  /** Logs once that these troubles are over, of those that began before something was asked which now succeeded. */
  over(lines: readonly string[], said: string, askedMs: number): void;
};

/** How many troubles are remembered. */
const mostRemembered = 100;

type Trouble = {
  readonly beganMs: number;
  readonly quiet: NodeJS.Timeout | undefined;
  lastMs: number;
  saidMs: number;
  /** How often something met it, and how often of these since it was logged. */
  failures: number;
  unsaid: number;
};

/** @param minuteMs for tests: what counts as a minute */
export function openTroubles(logger: Pick<Logger, 'info' | 'warn'>, minuteMs = 60_000): Troubles {
  const going = new Map<string, Trouble>();

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
    const times = { beganMs: nowMs, lastMs: nowMs, saidMs: nowMs };
    const isOver = () => end(line, `For a minute nothing met this: ${name}`, trouble.lastMs);
    const quiet = lasts ? undefined : setTimeout(isOver, minuteMs).unref();
    const trouble: Trouble = { ...times, quiet, failures: 1, unsaid: 0 };
    going.set(line, trouble);
    const [oldest = ''] = going.keys();
    if (going.size > mostRemembered) forget(oldest);
  }

  return {
    met: (line, { reason, ...of } = {}) => {
      const nowMs = performance.now();
      const trouble = going.get(line);
      if (trouble === undefined) {
        begin(line, nowMs, of);
        logger.warn({ reason }, line);
        return;
      }
      trouble.quiet?.refresh();
      trouble.lastMs = nowMs;
      trouble.failures += 1;
      trouble.unsaid += 1;
      if (nowMs - trouble.saidMs < minuteMs) return;
      logger.warn({ reason, again: trouble.unsaid }, line);
      trouble.saidMs = nowMs;
      trouble.unsaid = 0;
    },
    over: (lines, said, askedMs) => {
      const [first, ...others] = lines.filter((line) => (going.get(line)?.beganMs ?? askedMs) < askedMs);
      if (first === undefined) return;
      for (const line of others) forget(line);
      end(first, said, performance.now());
    },
  };
}
