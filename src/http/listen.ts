import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import type { HonoEnv } from './exchange.ts';
import { newRequestId, requestIdHeader } from './request_id.ts';

export type Listening = {
  /** The address it listens on, `http://host:port`. */
  readonly url: string;
  /** Stops accepting, answers what was accepted, and ends within `drainMs`. */
  close(): Promise<void>;
};

/** Query strings of large candidate requests are real; upstream's servers are set to at least this. */
const maxHeaderBytes = 128 * 1024;

/** Serves the app over HTTP. Port 0 is any free one. */
export async function listen(
  app: Hono<HonoEnv>,
  options: { readonly host: string; readonly port: number; readonly drainMs?: number },
): Promise<Listening> {
  const server = createServer(
    { maxHeaderSize: maxHeaderBytes, keepAliveTimeout: 75_000 },
    getRequestListener(app.fetch),
  );
  server.on('clientError', answerUnparsed);
  const closeIdle = trackIdle(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { address, port, family } = server.address() as AddressInfo; // a TCP server has one
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      closeIdle();
      const timer = setTimeout(() => server.closeAllConnections(), options.drainMs ?? 25_000);
      await closed;
      clearTimeout(timer);
    },
  };
}

/**
 * While the server drains, answers say that the connection ends, so that no client sends the next request on one that is
 * about to close.
 */
function trackIdle(server: Server): () => void {
  let draining = false;
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    if (draining) response.setHeader('connection', 'close');
  });
  return () => {
    draining = true;
    server.closeIdleConnections();
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
