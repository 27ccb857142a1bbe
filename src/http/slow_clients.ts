import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';

/** How often clients are looked at, for a time in milliseconds that they have. */
const checkEveryMs = (timeoutMs: number): number => Math.min(30_000, Math.ceil(timeoutMs / 4));

/** Lets Node.js cut off a client that does not send its request within `timeoutMs`, or the headers within a minute. */
export const slowSenders = (timeoutMs: number): ServerOptions => ({
  headersTimeout: Math.min(60_000, timeoutMs),
  requestTimeout: timeoutMs,
  connectionsCheckingInterval: checkEveryMs(timeoutMs),
});

/**
 * Cuts off a client that does not take its answer within `timeoutMs`, or, of an answer that is made while it is sent, the part
 * that is there: until it is taken, it is kept in memory.
 */
export function cutSlowReaders(server: Server, timeoutMs: number): void {
  const waitsSinceMs = new Map<ServerResponse, number>();
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    waitsSinceMs.set(response, Number.POSITIVE_INFINITY);
    response.once('close', () => waitsSinceMs.delete(response));
  });
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const [response, sinceMs] of waitsSinceMs) {
      if (!waitsForClient(response)) waitsSinceMs.set(response, Number.POSITIVE_INFINITY);
      else if (sinceMs > nowMs) waitsSinceMs.set(response, nowMs);
      else if (nowMs - sinceMs >= timeoutMs) response.req.socket.destroy();
    }
  }, checkEveryMs(timeoutMs));
  timer.unref();
  server.once('close', () => clearInterval(timer));
}

const waitsForClient = (response: ServerResponse): boolean =>
  response.writableEnded ? !response.writableFinished : response.writableLength > 0;
