import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { newRequestId, requestIdHeader } from './request_id.ts';

/** Query strings of large candidate requests are real; upstream's servers are set to at least this. */
export const maxHeaderBytes = 128 * 1024;

/** Node's parser refuses a request that has more, by the same error as one that is too long. */
const maxHeaders = 1000;

/** What Node's parser refuses never becomes a request; it is answered in the API's form all the same. */
export function answerUnparsed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, title, detail] = problems[error.code ?? ''] ?? [400, 'Bad Request', 'The request could not be parsed'];
  endWith(socket, refusal(status, title, detail));
}

/** How long a client has, in milliseconds, to read that it was refused: cut off at once, it might not see it. */
const farewellMs = 1_000;

/** Says something last on a connection. A client that does not close its side, or never spoke TLS, is cut off then. */
function endWith(socket: Socket, lastWords: string): void {
  socket.end(lastWords);
  const timer = setTimeout(() => socket.destroy(), farewellMs);
  socket.once('close', () => clearTimeout(timer));
}

/** An answer with its head, behind which the connection ends. */
function refusal(status: number, title: string, detail: string): string {
  const requestId = newRequestId();
  const explanation =
    status === 400
      ? 'The server could not comply with the request since it is either malformed or otherwise incorrect.'
      : title;
  const body = JSON.stringify({
    errors: [{ status, title, detail: `${explanation}\n\n ${detail}  `, request_id: requestId }],
  });
  return (
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
    `${requestIdHeader}: ${requestId}\r\nConnection: close\r\n\r\n${body}`
  );
}

const problems: Readonly<Record<string, readonly [status: number, title: string, detail: string]>> = {
  HPE_INVALID_CONTENT_LENGTH: [400, 'Bad Request', 'content-length header must be an integer'],
  HPE_HEADER_OVERFLOW: [
    431,
    'Request Header Fields Too Large',
    `The request line and headers may have ${maxHeaderBytes} bytes, and there may be ${maxHeaders} headers`,
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout', 'The request did not arrive in time'],
};

/** Refuses a request that a proxy in front may have understood otherwise than Node.js does: one with several hosts (RFC 9112, 3.2). */
export const refuseAmbiguous =
  (listener: (request: IncomingMessage, response: Parameters<RequestListener>[1]) => unknown): RequestListener =>
  (request, response) => {
    if (hosts(request.rawHeaders) <= 1) return void listener(request, response);
    endWith(request.socket, refusal(400, 'Bad Request', 'The request has several Host headers'));
  };

/** @param rawHeaders names and values in turn. */
function hosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let place = 0; place < rawHeaders.length; place += 2) {
    const name = rawHeaders[place];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}
