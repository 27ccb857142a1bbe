/** What came back for a request. */
export type Reply = {
  readonly status: number;
  /** The header ETag. */
  readonly etag: string | undefined;
  /** The body as JSON. Undefined if there is none. */
  readonly body: unknown;
};

/** A request that a client sent, and when. Times are milliseconds since 1970, and no two events have the same. */
export type Operation<Action> = {
  readonly client: number;
  readonly action: Action;
  readonly invoked: number;
  /** Undefined if the answer never came, or was a 5xx: then the request may have been done, or may still be. */
  readonly completed: number | undefined;
  readonly reply: Reply | undefined;
};

/** Notes what clients did. */
export type History<Action> = {
  readonly operations: readonly Operation<Action>[];
  /** The time of an event that happens now. */
  now(): number;
  /**
   * Sends a request and notes it. @param send resolves to undefined if the outcome is unknown
   * @returns what `send` resolved to
   */
  record(client: number, action: Action, send: () => Promise<Reply | undefined>): Promise<Reply | undefined>;
};

/** A history without operations. */
export function openHistory<Action>(): History<Action> {
  const operations: Operation<Action>[] = [];
  const startMs = monotonicStartMs();
  let lastMs = 0;
  const now = (): number => {
    lastMs = Math.max(startMs + performance.now(), lastMs + 0.001);
    return lastMs;
  };
  return {
    operations,
    now,
    record: async (client, action, send) => {
      const invoked = now();
      const reply = await send();
      operations.push({ client, action, invoked, completed: reply === undefined ? undefined : now(), reply });
      return reply;
    },
  };
}

/**
 * What `performance.now()` counts from, by the clock of the machine. On a busy machine the process may be stopped between
 * reading the two clocks, for tenths of a second, so they are read until they are read at once.
 */
function monotonicStartMs(): number {
  for (;;) {
    const before = performance.now();
    const now = Date.now();
    const after = performance.now();
    if (after - before < 0.1) return now - after;
  }
}
