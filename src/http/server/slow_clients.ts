import type { Server, ServerOptions, ServerResponse } from 'node:http';
import type { Unanswered } from './unanswered.ts';

/** How often connections are checked, in milliseconds, where clients have `timeoutMs`. */
const checkEveryMs = (timeoutMs: number): number => Math.min(30_000, Math.ceil(timeoutMs / 4));

/** Lets Node.js cut off a client that does not send its request within `timeoutMs`, or the headers within a minute. */
export const slowSenders = (timeoutMs: number): ServerOptions => ({
  headersTimeout: Math.min(60_000, timeoutMs),
  requestTimeout: timeoutMs,
  connectionsCheckingInterval: checkEveryMs(timeoutMs),
});

/**
 * Cuts off a client that does not read its answer within `timeoutMs`; of an answer that is made while it is sent, the
 * part that is made so far. Until the client reads it, it stays in memory.
 */
export function cutSlowReaders(server: Server, unanswered: Unanswered, timeoutMs: number): void {
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const each of unanswered.all) {
      if (!waitsForClient(each.response)) each.waitsSinceMs = Number.POSITIVE_INFINITY;
      else if (each.waitsSinceMs > nowMs) each.waitsSinceMs = nowMs;
      else if (nowMs - each.waitsSinceMs >= timeoutMs) each.response.req.socket.destroy();
    }
  }, checkEveryMs(timeoutMs));
  timer.unref();
  server.once('close', () => clearInterval(timer));
}

/** An answer without a connection waits for earlier answers, and not for the client. */
const waitsForClient = (response: ServerResponse): boolean =>
  response.socket !== null && (response.writableEnded ? !response.writableFinished : response.writableLength > 0);
