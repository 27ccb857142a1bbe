import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import type { HonoEnv } from '../exchange.ts';
import { meetExpectations } from './expectations.ts';
import { refuseHandshakes } from './handshakes.ts';
import { trackConnections } from './open_connections.ts';
import type { Refused } from './refusal.ts';
import { openRefusals } from './refusals.ts';
import { cutSlowReaders, slowSenders } from './slow_clients.ts';
import type { Tls } from './tls_files.ts';
import { trackUnanswered, type Unanswered } from './unanswered.ts';
import { answerUnparsed, maxHeaderBytes, refuseAmbiguous, refuseTunnels, refuseWithoutUrl } from './unparsed.ts';

/** Node's HTTP server with the app, which does not listen yet. */
export type ApiServer = {
  readonly server: Server;
  readonly scheme: 'http' | 'https';
  /** Uses another certificate for new connections. @throws Error on plain HTTP. */
  renewTls(tls: Tls): void;
  /**
   * Tells clients in the next answer that the connection ends, ends idle connections, and all others after `drainMs`.
   * The server must not accept new ones any more. Resolves when no connection is left.
   */
  drain(): Promise<void>;
};

/**
 * How long a TLS handshake may take. Until it is done, an idle client cannot be told from one that does not speak TLS.
 */
const handshakeTimeoutMs = 10_000;

/** How long clients have to learn, by the answer to a request, that their idle connection ends. */
const farewellMs = 500;

/** How clients are served. */
export type ApiServerOptions = {
  /** For HTTPS. */
  readonly tls?: Tls;
  readonly drainMs?: number;
  /** How long a client may take to send a request, and to take its answer. */
  readonly clientTimeoutMs?: number;
  /** Called for each request that the app does not get because it is refused before. */
  readonly onRefused?: (refused: Refused) => void;
};

/** Puts the app behind a server that cuts off slow clients and can be drained. */
export function createApiServer(app: Hono<HonoEnv>, options: ApiServerOptions): ApiServer {
  const { tls, drainMs = 25_000, clientTimeoutMs = 60_000, onRefused = () => {} } = options;
  const settings = {
    ...slowSenders(clientTimeoutMs),
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: 75_000,
    // refuseAmbiguous looks for Host headers, and refuses requests in the form of the API.
    requireHostHeader: false,
  };
  const server =
    tls === undefined
      ? createServer(settings)
      : createTlsServer({ ...settings, ...tls, handshakeTimeout: Math.min(handshakeTimeoutMs, clientTimeoutMs) });
  // A client that has closed its side may still wait for answers. (Under TLS, a side that closes ends both directions.)
  if (tls === undefined) Object.assign(server, { httpAllowHalfOpen: true });
  const unanswered = trackUnanswered(server);
  const refusals = openRefusals(unanswered, onRefused);
  const carryOut = refuseWithoutUrl(onRefused, (errorHandler) => getRequestListener(app.fetch, { errorHandler }));
  server.on('request', refuseAmbiguous(refusals, meetExpectations(server, refusals, carryOut)));
  server.on('clientError', answerUnparsed(unanswered, refusals));
  server.on('connect', refuseTunnels(unanswered, refusals));
  cutSlowReaders(server, unanswered, clientTimeoutMs);
  const connections = trackConnections(server);
  if (server instanceof TlsServer) refuseHandshakes(server, connections, { refusals, report: onRefused });
  return {
    server,
    scheme: tls === undefined ? 'http' : 'https',
    renewTls: (renewed) => {
      if (!(server instanceof TlsServer)) throw new Error('Plain HTTP has no certificate.');
      server.setSecureContext(renewed);
    },
    drain: async () => {
      announceEnd(server, unanswered);
      const timer = setTimeout(connections.endAll, drainMs);
      const closing = setInterval(() => {
        // Node.js calls a connection idle while the client still reads a finished answer.
        if (!unanswered.all.some(({ response }) => response.writableEnded)) server.closeIdleConnections();
        connections.endSilent();
      }, farewellMs);
      await connections.ended();
      clearInterval(closing);
      clearTimeout(timer);
    },
  };
}

/**
 * From now on every answer says that the connection ends, so that no client sends another request on a connection that
 * is about to close.
 */
function announceEnd(server: Server, unanswered: Unanswered): void {
  const markAsLast = (response: ServerResponse): void => {
    if (!response.headersSent) response.setHeader('connection', 'close');
  };
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => markAsLast(response));
  for (const { response } of unanswered.all) markAsLast(response);
}
