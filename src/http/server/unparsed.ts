import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { RequestError } from '@hono/node-server';
import { newRequestId, requestIdHeader } from '../request_id.ts';
import type { Refusals } from './refusals.ts';
import type { Unanswered } from './unanswered.ts';

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
  (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (socket.destroyed || refusals.isRefused(socket)) return;
    if (error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const [status, title, detail] = problems[error.code ?? ''] ?? [
      400,
      'Bad Request',
      'The request could not be parsed',
    ];
    // The error may be in the body of a request whose headers were correct.
    const own = unanswered.on(socket).find(({ req }) => !req.complete);
    const answer = unanswered.isAnsweredEarly(socket) ? '' : refusal(status, title, detail, own?.req.method);
    refusals.refuse(socket, answer, own);
  };

/**
 * The text of an answer with its headers, after which the connection ends.
 *
 * @param method of the request, where it is known: the answer to HEAD has no body
 */
export function refusal(status: number, title: string, detail: string, method?: string): string {
  const { requestId, body } = problemBody(status, title, detail);
  return (
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
    `${requestIdHeader}: ${requestId}\r\nConnection: close\r\n\r\n${method === 'HEAD' ? '' : body}`
  );
}

function problemBody(
  status: number,
  title: string,
  detail: string,
): { readonly requestId: string; readonly body: string } {
  const requestId = newRequestId();
  const explanation =
    status === 400
      ? 'The server could not comply with the request since it is either malformed or otherwise incorrect.'
      : title;
  const body = JSON.stringify({
    errors: [{ status, title, detail: `${explanation}\n\n ${detail}  `, request_id: requestId }],
  });
  return { requestId, body };
}

/** The answer to a request whose Host header or target is no part of a URL, so that the app cannot get it. */
export function answerWithoutUrl(error: unknown): Response {
  if (!(error instanceof RequestError)) return new Response(null, { status: 500 }); // as without this function
  const { requestId, body } = problemBody(
    400,
    'Bad Request',
    `The Host header or the target is invalid: ${error.message}`,
  );
  const length = `${Buffer.byteLength(body)}`;
  const headers = { 'content-type': 'application/json', 'content-length': length, [requestIdHeader]: requestId };
  return new Response(body, { status: 400, headers });
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
    const problem = `The request has ${count === 0 ? 'no Host header' : 'several Host headers'}`;
    refusals.refuse(request.socket, refusal(400, 'Bad Request', problem, request.method), response);
  };

/**
 * Node.js hands over a connection on which CONNECT is requested, and would close it before earlier answers are sent.
 */
export const refuseTunnels =
  (unanswered: Unanswered, refusals: Refusals) =>
  (_request: IncomingMessage, socket: Socket): void => {
    const before = unanswered.on(socket);
    socket.on('error', () => {});
    // Node.js does not emit `drain` on the response that is being sent any more.
    socket.on('drain', () => {
      for (const response of before) if (response.socket === socket) response.emit('drain');
    });
    refusals.refuse(socket, refusal(400, 'Bad Request', 'This server is no proxy: CONNECT is not understood'));
  };

/** The number of Host headers. @param rawHeaders names and values in turn. */
function hosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let place = 0; place < rawHeaders.length; place += 2) {
    const name = rawHeaders[place];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}
