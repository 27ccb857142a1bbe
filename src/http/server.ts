import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import type { HonoEnv } from './exchange.ts';
import { trackConnections } from './open_connections.ts';
import { newRequestId, requestIdHeader } from './request_id.ts';
import type { Tls } from './tls_files.ts';

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

/** Query strings of large candidate requests are real; upstream's servers are set to at least this. */
const maxHeaderBytes = 128 * 1024;

/** How long a TLS handshake may take: until it is done, nothing tells an idle client from one that does not speak TLS. */
const handshakeTimeoutMs = 10_000;

/** How long clients with a connection that is kept alive may find out that it ends, by the answer to a request. */
const farewellMs = 500;

export function createApiServer(
  app: Hono<HonoEnv>,
  { tls, drainMs = 25_000 }: { readonly tls?: Tls; readonly drainMs?: number },
): ApiServer {
  const settings = { maxHeaderSize: maxHeaderBytes, keepAliveTimeout: 75_000 };
  const listener = getRequestListener(app.fetch);
  const server =
    tls === undefined
      ? createServer(settings, listener)
      : createTlsServer({ ...settings, ...tls, handshakeTimeout: handshakeTimeoutMs }, listener);
  server.on('clientError', answerUnparsed);
  const connections = trackConnections(server);
  const sayFarewell = trackAnswers(server);
  return {
    server,
    scheme: tls === undefined ? 'http' : 'https',
    renewTls: (renewed) => {
      if (!(server instanceof TlsServer)) throw new Error('Plain HTTP has no certificate.');
      server.setSecureContext(renewed);
    },
    drain: async () => {
      sayFarewell();
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
 * While the server drains, answers say that the connection ends, so that no client sends the next request on one that is
 * about to close.
 */
function trackAnswers(server: Server): () => void {
  let draining = false;
  const unanswered = new Set<ServerResponse>();
  const lastOne = (response: ServerResponse): void => {
    if (!response.headersSent) response.setHeader('connection', 'close');
  };
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    if (draining) lastOne(response);
    unanswered.add(response);
    response.once('close', () => unanswered.delete(response));
  });
  return () => {
    draining = true;
    for (const response of unanswered) lastOne(response);
  };
}

/** What Node's parser refuses never becomes a request; it is answered in the API's form all the same. */
function answerUnparsed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, title, detail] = problems[error.code ?? ''] ?? [400, 'Bad Request', 'The request could not be parsed'];
  const requestId = newRequestId();
  const explanation =
    status === 400
      ? 'The server could not comply with the request since it is either malformed or otherwise incorrect.'
      : title;
  const body = JSON.stringify({
    errors: [{ status, title, detail: `${explanation}\n\n ${detail}  `, request_id: requestId }],
  });
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `${requestIdHeader}: ${requestId}\r\nConnection: close\r\n\r\n${body}`,
  );
}

const problems: Readonly<Record<string, readonly [status: number, title: string, detail: string]>> = {
  HPE_INVALID_CONTENT_LENGTH: [400, 'Bad Request', 'content-length header must be an integer'],
  HPE_HEADER_OVERFLOW: [
    431,
    'Request Header Fields Too Large',
    `The request line and headers may have ${maxHeaderBytes} bytes`,
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout', 'The request did not arrive in time'],
};
