import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import type { HonoEnv } from './exchange.ts';
import { cutSlowReaders, slowSenders } from './slow_clients.ts';
import type { Tls } from './tls_files.ts';
import { answerUnparsed, maxHeaderBytes, refuseAmbiguous } from './unparsed.ts';

export type Listening = {
  /** The address it listens on, `http://host:port`. */
  readonly url: string;
  /** Serves new connections by another certificate. @throws Error on plain HTTP. */
  renewTls(tls: Tls): void;
  /** Stops accepting, answers what was accepted, and ends within `drainMs`. */
  close(): Promise<void>;
};

export type ListenOptions = {
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
  /** For HTTPS. */
  readonly tls?: Tls;
  readonly drainMs?: number;
  /** How long a client may take to send a request, and to take its answer. */
  readonly clientTimeoutMs?: number;
};

/** How long connections are still accepted when the end has begun, in milliseconds. */
const acceptMs = 100;

/** How long clients with a connection that is kept alive may find out that it ends, by the answer to a request. */
const farewellMs = 500;

/**
 * Serves the app over HTTP.
 *
 * @throws Error with the remedy where the address cannot be listened on.
 */
export async function listen(app: Hono<HonoEnv>, options: ListenOptions): Promise<Listening> {
  const { tls, host, drainMs = 25_000, clientTimeoutMs = 60_000 } = options;
  const settings = { ...slowSenders(clientTimeoutMs), maxHeaderSize: maxHeaderBytes, keepAliveTimeout: 75_000 };
  const listener = refuseAmbiguous(getRequestListener(app.fetch));
  const server =
    tls === undefined
      ? createServer(settings, listener)
      : createTlsServer({ ...settings, ...tls, handshakeTimeout: clientTimeoutMs }, listener);
  server.on('clientError', answerUnparsed);
  cutSlowReaders(server, clientTimeoutMs);
  const sayFarewell = trackAnswers(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(error, options)));
    server.listen(options.port, host, resolve);
  });
  const { address, port, family } = server.address() as AddressInfo; // a TCP server has one
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    renewTls: (renewed) => {
      if (!(server instanceof TlsServer)) throw new Error('Plain HTTP has no certificate.');
      server.setSecureContext(renewed);
    },
    close: async () => {
      // Connections that the kernel took and this process has not seen yet would be cut off: they get the time to be seen.
      // Only then are clients told to go: before, they would come back at once, by connections of that very kind.
      await sleep(acceptMs);
      // Not http.Server's own close, which would end idle connections at once, under requests that are on their way.
      const closed = new Promise<void>((resolve) => net.Server.prototype.close.call(server, () => resolve()));
      sayFarewell();
      const timer = setTimeout(() => server.closeAllConnections(), drainMs);
      const closing = setInterval(() => server.closeIdleConnections(), farewellMs);
      await closed;
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

function cannotListen(error: NodeJS.ErrnoException, { host, port }: ListenOptions): Error {
  const address = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
  const problem = listenProblems[error.code ?? ''] ?? `${error.message}.`;
  return new Error(`Cannot listen on ${address}: ${problem}`, { cause: error });
}

const listenProblems: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program does. Stop it, or choose another port by --port or [api] port.',
  EACCES: 'this user may not. Choose a port of 1024 or above by --port or [api] port.',
  EADDRNOTAVAIL: 'this machine has no such address. Choose one that it has by --host or [api] host.',
  ENOTFOUND: 'the host is unknown. Choose an address of this machine by --host or [api] host.',
};
