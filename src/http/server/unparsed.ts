import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { RequestError } from '@hono/node-server';
import { newRequestId } from '../exchange.ts';
import { hostInUrl } from '../own_hosts.ts';
import { answerTo, type Refusal, type Refusals, type RefusedConnection, type Unanswered } from './connections.ts';

/**
 * The limit for the request line and the headers. Query strings of candidate requests can be long, and upstream's
 * servers allow at least this.
 */
export const maxHeaderBytes = 128 * 1024;

/** Node's parser refuses a request with more headers, with the same error as for one that is too long. */
const maxHeaders = 1000;

/** Answers requests that Node's parser refuses, in the form of the API. */
export const answerUnparsed =
  (unanswered: Unanswered, refusals: Refusals) =>
  (error: UnparsedError, socket: Socket): void => {
    if (socket.destroyed || refusals.isRefused(socket)) return;
    if (error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    if (unanswered.isAnsweredEarly(socket)) {
      refusals.end(socket);
      return;
    }
    // The error may be in the body of a request whose headers were correct.
    const own = unanswered.on(socket).find(({ req }) => !req.complete);
    const problem = own === undefined && isTls(error) ? tlsOnPlainHttp : (problems[error.code ?? ''] ?? malformed);
    refusals.refuse(socket, { ...problem, request: own?.req, cause: error.code }, own);
  };

/** An error of Node's parser, with what arrived. */
type UnparsedError = NodeJS.ErrnoException & { readonly rawPacket?: Uint8Array };

/** Whether a connection began with a TLS handshake. */
const isTls = ({ rawPacket }: UnparsedError): boolean => rawPacket?.[0] === 0x16 && rawPacket[1] === 0x03;

type ParseProblem = Omit<Refusal, 'request'>;

const malformed: ParseProblem = {
  reason: 'malformed',
  status: 400,
  title: 'Bad Request',
  detail: 'The request could not be parsed',
};

const tlsOnPlainHttp: ParseProblem = {
  ...malformed,
  reason: 'TLS on plain HTTP',
  detail: 'This port speaks plain HTTP, and the client speaks TLS: call it by http://, or configure [ssl] cert_file',
};

const problems: Readonly<Record<string, ParseProblem>> = {
  HPE_INVALID_CONTENT_LENGTH: { ...malformed, detail: 'content-length header must be an integer' },
  HPE_HEADER_OVERFLOW: {
    reason: 'head too long',
    status: 431,
    title: 'Request Header Fields Too Large',
    detail: `The request line and headers may have ${maxHeaderBytes} bytes, and there may be ${maxHeaders} headers`,
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    reason: 'late',
    status: 408,
    title: 'Request Timeout',
    detail: 'The request did not arrive in time',
  },
};

/**
 * Passes a request to the app if node-server can make a URL of its Host header and its target. Answers all other requests without the app.
 *
 * @param serve makes node-server's listener; a second function answers its errors
 */
export function refuseWithoutUrl(
  report: (refused: RefusedConnection) => void,
  serve: (answerError: (error: unknown) => Response) => RequestListener,
): RequestListener {
  let current: IncomingMessage | undefined;
  const listener = serve((error) => {
    if (!(error instanceof RequestError)) return new Response(null, { status: 500 }); // as without this function
    const detail = `The Host header or the target is invalid: ${error.message}`;
    const requestId = newRequestId();
    const { headers, body } = answerTo({ ...malformed, detail }, requestId);
    const { method, url, socket } = current ?? {};
    const reason = 'host or target invalid';
    report({ reason, status: 400, detail, requestId, client: socket?.remoteAddress, method, url });
    return new Response(body, { status: 400, headers });
  });
  return (request, response) => {
    giveUsableUrl(request);
    // node-server makes the URL, and calls the function above, before its listener returns.
    current = request;
    listener(request, response);
    current = undefined;
  };
}

/**
 * Refuses a request that a proxy in front may understand differently from Node.js: with several Host headers, or with
 * none, which only HTTP/1.0 allows (RFC 9112, 3.2). Requests that follow a refused one are not carried out.
 */
export const refuseAmbiguous =
  (
    refusals: Refusals,
    listener: (request: IncomingMessage, response: Parameters<RequestListener>[1]) => unknown,
  ): RequestListener =>
  (request, response) => {
    if (refusals.isRefused(request.socket)) return;
    const count = hosts(request.rawHeaders);
    if (count === 1 || (count === 0 && request.httpVersion === '1.0')) return void listener(request, response);
    const detail = `The request has ${count === 0 ? 'no Host header' : 'several Host headers'}`;
    const reason = count === 0 ? 'host missing' : 'several hosts';
    refusals.refuse(request.socket, { ...malformed, reason, detail, request }, response);
  };

/**
 * Node.js hands over a connection on which CONNECT is requested, and would close it before earlier answers are sent.
 */
export const refuseTunnels =
  (unanswered: Unanswered, refusals: Refusals) =>
  (request: IncomingMessage, socket: Socket): void => {
    const before = unanswered.on(socket);
    socket.on('error', () => {});
    // Node.js does not emit `drain` on the response that is being sent any more.
    socket.on('drain', () => {
      for (const response of before) if (response.socket === socket) response.emit('drain');
    });
    const detail = 'This server is no proxy: CONNECT is not understood';
    refusals.refuse(socket, { ...malformed, reason: 'tunnel', detail, request });
  };

/** The number of Host headers. @param rawHeaders names and values in turn. */
function hosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** Most Host headers: they are in the form of a URL already. */
const usualHost = /^[a-z0-9._-]+(?::\d+)?$/;

/**
 * Sets a host and a path from which node-server can make a URL. It refuses a host in any other form than in a URL, although other
 * forms are valid: `[2001:0db8::1]`, or `name:` with an empty port.
 *
 * - A request without a host (HTTP/1.0, and the health checks of load balancers), or with an empty one, is for this server.
 * - `OPTIONS *` asks about the server as a whole (RFC 9110, 9.3.7), as `OPTIONS /` does.
 *
 * The header itself, as `rawHeaders` have it, stays as it was sent.
 */
function giveUsableUrl(request: IncomingMessage): void {
  const { headers, socket } = request;
  const { host } = headers;
  if (host === undefined || host === '') headers.host = ownHost(socket);
  else if (!usualHost.test(host))
    headers.host = hostInUrl(host, socket instanceof TLSSocket ? 'https' : 'http') ?? host;
  if (request.url === '*' && request.method === 'OPTIONS') request.url = '/';
}

/** The address and port on which the client has reached this server. */
function ownHost({ localAddress = '127.0.0.1', localPort = 0 }: Socket): string {
  const address = localAddress.replace(/^::ffff:(?=[\d.]+$)/i, '').replace(/%.*$/, '');
  return address.includes(':') ? `[${address}]:${localPort}` : `${address}:${localPort}`;
}
