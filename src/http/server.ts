import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import type { HonoEnv } from './exchange.ts';
import { trackConnections } from './open_connections.ts';
import { cutSlowReaders, slowSenders } from './slow_clients.ts';
import type { Tls } from './tls_files.ts';
import { trackUnanswered, type Unanswered } from './unanswered.ts';
import { answerUnparsed, maxHeaderBytes, refuseAmbiguous } from './unparsed.ts';

/** The app behind Node's HTTP server, which listens nowhere yet. */
export type ApiServer = {
  readonly server: Server;
  readonly scheme: 'http' | 'https';
  /** Serves new connections by another certificate. @throws Error on plain HTTP. */
  renewTls(tls: Tls): void;
  /**
   * Tells clients with the next answer that their connection ends, ends those that are idle, and all others after `drainMs`.
   * There must be no new ones any more. Resolves when none is left.
   */
  drain(): Promise<void>;
};

/** How long a TLS handshake may take: until it is done, nothing tells an idle client from one that does not speak TLS. */
const handshakeTimeoutMs = 10_000;

/** How long clients with a connection that is kept alive may find out that it ends, by the answer to a request. */
const farewellMs = 500;

/** How clients are served. */
export type ApiServerOptions = {
  /** For HTTPS. */
  readonly tls?: Tls;
  readonly drainMs?: number;
  /** How long a client may take to send a request, and to take its answer. */
  readonly clientTimeoutMs?: number;
};

/** Puts the app behind a server that cuts off slow clients and can be drained. */
export function createApiServer(app: Hono<HonoEnv>, options: ApiServerOptions): ApiServer {
  const { tls, drainMs = 25_000, clientTimeoutMs = 60_000 } = options;
  const settings = { ...slowSenders(clientTimeoutMs), maxHeaderSize: maxHeaderBytes, keepAliveTimeout: 75_000 };
  const listener = refuseAmbiguous(getRequestListener(app.fetch));
  const server =
    tls === undefined
      ? createServer(settings, listener)
      : createTlsServer(
          { ...settings, ...tls, handshakeTimeout: Math.min(handshakeTimeoutMs, clientTimeoutMs) },
          listener,
        );
  server.on('clientError', answerUnparsed);
  const unanswered = trackUnanswered(server);
  cutSlowReaders(server, unanswered, clientTimeoutMs);
  const connections = trackConnections(server);
  return {
    server,
    scheme: tls === undefined ? 'http' : 'https',
    renewTls: (renewed) => {
      if (!(server instanceof TlsServer)) throw new Error('Plain HTTP has no certificate.');
      server.setSecureContext(renewed);
    },
    drain: async () => {
      sayFarewell(server, unanswered);
      const timer = setTimeout(connections.endAll, drainMs);
      const closing = setInterval(() => {
        server.closeIdleConnections();
        connections.endSilent();
      }, farewellMs);
      await connections.ended();
      clearInterval(closing);
      clearTimeout(timer);
    },
  };
}

/**
 * From now on answers say that the connection ends, so that no client sends the next request on one that is about to close.
 */
function sayFarewell(server: Server, unanswered: readonly Unanswered[]): void {
  const lastOne = (response: ServerResponse): void => {
    if (!response.headersSent) response.setHeader('connection', 'close');
  };
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => lastOne(response));
  for (const { response } of unanswered) lastOne(response);
}
