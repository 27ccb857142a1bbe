import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';

/** How often clients are looked at, for a time in milliseconds that they have. */
const checkEveryMs = (timeoutMs: number): number => Math.min(30_000, Math.ceil(timeoutMs / 4));

/** What of Node.js cuts a client that does not send its request within `timeoutMs`, the headers within a minute. */
export const slowSenders = (timeoutMs: number): ServerOptions => ({
  headersTimeout: Math.min(60_000, timeoutMs),
  requestTimeout: timeoutMs,
  connectionsCheckingInterval: checkEveryMs(timeoutMs),
});

/** Cuts a client that has not taken an answer whole within `timeoutMs` of its head: until then it is kept in memory. */
export function cutSlowReaders(server: Server, timeoutMs: number): void {
  const answeredAtMs = new Map<ServerResponse, number>();
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    answeredAtMs.set(response, Number.POSITIVE_INFINITY);
    response.once('close', () => answeredAtMs.delete(response));
  });
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const [response, sinceMs] of answeredAtMs) {
      if (response.headersSent && sinceMs > nowMs) answeredAtMs.set(response, nowMs);
      if (nowMs - sinceMs >= timeoutMs) response.req.socket.destroy();
    }
  }, checkEveryMs(timeoutMs));
  timer.unref();
  server.once('close', () => clearInterval(timer));
}
