import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import type { HonoEnv } from '../exchange.ts';
import {
  type OpenConnections,
  openRefusals,
  type Refusals,
  type RefusedConnection,
  trackConnections,
  trackUnanswered,
  type Unanswered,
} from './connections.ts';
import type { Tls } from './tls_files.ts';
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
 * How long a TLS handshake may take. Until it is done, an idle client cannot be distinguished from one that does not speak TLS.
 */
const handshakeTimeoutMs = 10_000;

/** For how long the answer to a request may still announce to a client that its idle connection will be closed. */
const farewellMs = 500;

/** How clients are served. */
export type ApiServerOptions = {
  /** For HTTPS. */
  readonly tls?: Tls | undefined;
  readonly drainMs?: number;
  /** How long a client may take to send a request, and to take its answer. */
  readonly clientTimeoutMs?: number;
  /** Called for each request that the app does not get because it is refused before. */
  readonly onRefused?: (refused: RefusedConnection) => void;
};

/** Puts the app behind a server that cuts off slow clients and can be drained. */
export function createApiServer(app: Hono<HonoEnv>, options: ApiServerOptions): ApiServer {
  const { tls, drainMs = 25_000, clientTimeoutMs = 60_000, onRefused = () => {} } = options;
  const settings = {
    ...slowSenders(clientTimeoutMs),
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: 75_000,
    // refuseAmbiguous checks Host headers, and refuses requests in the form of the API.
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
  server.on('request', refuseAmbiguous(refusals, answerExpectations(server, refusals, carryOut)));
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
        connections.endUnused();
      }, farewellMs);
      await connections.ended();
      clearInterval(closing);
      clearTimeout(timer);
    },
  };
}

/**
 * From now on the last answer of each connection announces its end, so that no client sends another request on a connection
 * that is about to close. Node.js sends nothing after such an answer: so it must be the last one where a client did not wait for answers.
 */
function announceEnd(server: Server, unanswered: Unanswered): void {
  const last = new WeakMap<Socket, ServerResponse>();
  const markAsLast = (response: ServerResponse): void => {
    const earlier = last.get(response.req.socket);
    if (earlier?.headersSent === false) earlier.removeHeader('connection');
    if (!response.headersSent) response.setHeader('connection', 'close');
    last.set(response.req.socket, response);
  };
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => markAsLast(response));
  const inOrder = [...unanswered.all].sort((one, other) => one.number - other.number);
  for (const { response } of inOrder) markAsLast(response);
}

/**
 * Answers what requests expect by `Expect` (RFC 9110, 10.1.1): with 100 Continue before a request is carried out, and with 417 if it is
 * anything else.
 *
 * Node.js emits other events than `request` for them, and without a listener answers by itself: a request with several hosts would
 * get its 100 or 417 unchecked. So they are emitted again as a `request`, and pass the checks of all requests.
 *
 * @returns a listener for the requests that passed all other checks; `listener` carries them out
 */
function answerExpectations(server: Server, refusals: Refusals, listener: RequestListener): RequestListener {
  const expected = new WeakMap<IncomingMessage, '100-continue' | 'unknown'>();
  server.on('checkContinue', (request: IncomingMessage, response) => {
    expected.set(request, '100-continue');
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage, response) => {
    expected.set(request, 'unknown');
    server.emit('request', request, response);
  });
  return (request, response) => {
    const expectation = expected.get(request);
    if (expectation === 'unknown') {
      // The client may never send the body that its headers announce, so the connection ends.
      const value = request.headers.expect?.slice(0, 100);
      const detail = `A request may expect 100-continue, and nothing else: Expect is ${JSON.stringify(value)}`;
      const refusal = {
        reason: 'unknown expectation',
        status: 417,
        title: 'Expectation Failed',
        detail,
        request,
      } as const;
      refusals.refuse(request.socket, refusal, response);
      return;
    }
    const carryOut = (): void => {
      if (expectation === '100-continue') response.writeContinue();
      listener(request, response);
    };
    // Node.js puts the headers of an answer that waits for earlier ones before a 100 Continue that waits with it, so that
    // the client takes the 100 for a part of the body. So the request itself waits for its turn.
    if (expectation === '100-continue' && response.socket === null) response.once('socket', carryOut);
    else carryOut();
  };
}

/**
 * Answers a client that speaks plain HTTP to the port of TLS, and reports it and every other client with which no TLS connection could
 * be made. A client that disconnected by itself, such as a health check of TCP, is not reported.
 */
function refuseHandshakes(
  server: TlsServer,
  connections: OpenConnections,
  { refusals, report }: { readonly refusals: Refusals; readonly report: (refused: RefusedConnection) => void },
): void {
  server.on('tlsClientError', (error: TlsError, secure: TLSSocket) => {
    const { code = '', reason, message } = error;
    if (codesOfClientLeft.has(code)) return;
    const connection = connections.tcpConnectionOf(secure);
    if (code === 'ERR_SSL_HTTP_REQUEST' && connection !== undefined) {
      const detail =
        'This port speaks HTTPS ([ssl] cert_file), and the request came by plain HTTP: call it by https:// instead of http://';
      refusals.refuse(connection, { reason: 'plain HTTP', status: 400, title: 'Bad Request', detail });
      return;
    }
    report({
      reason: code === 'ERR_TLS_HANDSHAKE_TIMEOUT' ? 'late' : 'TLS handshake',
      detail: `No TLS connection could be made: ${reason ?? message}`,
      cause: code,
      client: secure.remoteAddress,
    });
  });
}

/** An error of OpenSSL has its words in `reason`; its message also names files and lines of its source code. */
type TlsError = NodeJS.ErrnoException & { readonly reason?: string };

const codesOfClientLeft: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/** How often connections are checked, in milliseconds, where clients have `timeoutMs`. */
const checkEveryMs = (timeoutMs: number): number => Math.min(30_000, Math.ceil(timeoutMs / 4));

/** Lets Node.js cut off a client that does not send its request within `timeoutMs`, or (its default) the headers within a minute. */
const slowSenders = (timeoutMs: number): ServerOptions => ({
  requestTimeout: timeoutMs,
  connectionsCheckingInterval: checkEveryMs(timeoutMs),
});

/**
 * Disconnects a client that does not read its answer within `timeoutMs`, since the answer stays in memory until it is read. For an
 * answer that is made while it is sent, the limit is for the part that is made so far.
 */
function cutSlowReaders(server: Server, unanswered: Unanswered, timeoutMs: number): void {
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
