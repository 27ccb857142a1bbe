import type { ServerResponse } from 'node:http';
import { since } from '../placement/microversions.ts';
import type { Answer } from '../rest/endpoint.ts';
import type { JsonChunks } from '../rest/json_body.ts';
import { type Rendered, rangeHeaders, renderText } from './dialect.ts';
import { type Exchange, requestIdHeader } from './exchange.ts';

/**
 * Renders what a handler returned.
 *
 * @param version of the request
 * @param origin scheme, authority and prefix by which the client calls, for the location
 * @param cutOff closes the connection; it is called where making the body fails halfway
 */
export function renderAnswer(
  answer: Answer,
  version: number,
  origin: string,
  cutOff: (error: unknown) => void,
): Rendered {
  const headers: Record<string, string> = { ...answer.headers };
  if (answer.location !== undefined) headers.location = origin + answer.location;
  if (answer.etag !== undefined) headers.etag = answer.etag;
  if (answer.lastModified !== undefined && version >= since.cacheHeaders) {
    headers['cache-control'] = 'no-cache';
    if (answer.lastModified !== null) headers['last-modified'] = pastDate(answer.lastModified);
  }
  if (answer.body !== undefined) {
    headers['content-type'] = 'application/json';
    const { body, status } = answer;
    if (typeof body === 'string') return renderText(body, status, headers);
    // The length of a body that is made while it is sent is unknown.
    if (!(body instanceof Uint8Array)) return { status, headers, body: streamedBody(body, cutOff) };
    headers['content-length'] = String(body.length);
    return { status, headers, body };
  }
  if (answer.json === undefined) {
    if (answer.status !== 204) headers['content-length'] = '0';
    return { status: answer.status, headers, body: null };
  }
  headers['content-type'] = 'application/json';
  return renderText(JSON.stringify(answer.json), answer.status, headers);
}

/** The media type of server-sent events. */
export const eventStream = 'text/event-stream';

/** A stream of events, which no cache stores. The last header tells proxies such as nginx to pass on each event at once. */
export const renderEvents = (events: ReadableStream<Uint8Array>, headers: Answer['headers']): Rendered => ({
  status: 200,
  headers: {
    ...headers,
    'content-type': eventStream,
    'cache-control': 'no-cache, no-store',
    'x-accel-buffering': 'no',
  },
  body: events,
});

/**
 * A time for a header, which is never in the future (RFC 9110, 8.8.2.1) nor before 1970: in the database times may be
 * infinite, or have years of more than four digits.
 */
function pastDate(time: Date): string {
  const nowMs = Date.now();
  const timeMs = time.getTime();
  return new Date(Number.isNaN(timeMs) ? nowMs : Math.max(0, Math.min(timeMs, nowMs))).toUTCString();
}

/**
 * Called when Node.js has handed all of an answer to the kernel, or when the connection broke: releases the memory of the body, and
 * stops making chunks.
 */
export function releaseWhenSent({ release, body }: Answer, outgoing: ServerResponse | undefined): void {
  if (release !== undefined) outgoing?.once('close', release);
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) return;
  const end = () => body.return();
  // The client may have disconnected while its request waited for the database.
  if (outgoing?.closed) end();
  else outgoing?.once('close', end);
}

/**
 * The response to a request, with the headers that say which request it answers, at which version. All headers are given
 * when it is created: a `Response` makes a `Headers` of all when one is added, which took 7 % of the CPU time of a claim here.
 *
 * @param vary whether the answer would be another one at another version
 */
export function respond(exchange: Exchange, { status, headers, body }: Rendered, vary = true): Response {
  const { requestId, version, api } = exchange;
  const { dialect, service } = api;
  const all = {
    ...headers,
    ...rangeHeaders(service, exchange.versions),
    ...(version < 0 ? {} : dialect.versionHeaders(service, version, vary)),
    [requestIdHeader]: requestId,
  };
  const response = new Response(body, { status, headers: all });
  exchange.responded = { response, headers: all };
  return response;
}

/** A response without the headers that only answers of an API have. */
export const bareResponse = ({ status, headers, body }: Rendered): Response => new Response(body, { status, headers });

/**
 * A body that is made while the client reads it.
 *
 * @param cutOff is called where making the body fails. It must close the connection: the client has the status already,
 *   and must not believe that the body is complete.
 */
export function streamedBody(chunks: JsonChunks, cutOff: (error: unknown) => void): ReadableStream<Uint8Array> {
  /** Whether the client has disconnected, perhaps while the next chunk is made. */
  let hasLeft = false;
  return new ReadableStream({
    pull: async (controller) => {
      try {
        const { done, value } = await chunks.next();
        if (hasLeft) return;
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        if (hasLeft) return;
        cutOff(error);
        controller.close();
      }
    },
    cancel: () => {
      hasLeft = true;
      chunks.return();
    },
  });
}
