import type { ServerResponse } from 'node:http';
import { takeBackMemory } from '../answer_memory.ts';
import type { Answer } from '../api/endpoint.ts';
import { streamedBody } from './streamed_body.ts';

/** Microversion 1.15 brought last-modified and cache-control headers. */
const cacheHeadersSince = 15;

/**
 * @param origin scheme, authority and prefix by which the client calls, for the location
 * @param cutOff closes the connection, where a body cannot be made to its end
 */
export function renderAnswer(
  answer: Answer,
  minorVersion: number,
  origin: string,
  cutOff: (error: unknown) => void,
): Response {
  const headers: Record<string, string> = {};
  if (answer.location !== undefined) headers.location = origin + answer.location;
  if (answer.etag !== undefined) headers.etag = answer.etag;
  if (answer.lastModified !== undefined && minorVersion >= cacheHeadersSince) {
    headers['cache-control'] = 'no-cache';
    if (answer.lastModified !== null) headers['last-modified'] = pastDate(answer.lastModified);
  }
  if (answer.body !== undefined) {
    headers['content-type'] = 'application/json';
    const { body, status } = answer;
    // What is made while it is sent has no length yet.
    if (!(body instanceof Uint8Array)) return new Response(streamedBody(body, cutOff), { status, headers });
    headers['content-length'] = String(body.length);
    return new Response(body, { status, headers });
  }
  if (answer.json === undefined) {
    if (answer.status !== 204) headers['content-length'] = '0';
    return new Response(null, { status: answer.status, headers });
  }
  headers['content-type'] = 'application/json';
  return respondWith(JSON.stringify(answer.json), answer.status, headers);
}

/**
 * A time as a header says it, which is never in the future (RFC 9110, 8.8.2.1) nor before 1970: the database also has infinities
 * and years of more than four digits.
 */
function pastDate(time: Date): string {
  const nowMs = Date.now();
  const timeMs = time.getTime();
  return new Date(Number.isNaN(timeMs) ? nowMs : Math.max(0, Math.min(timeMs, nowMs))).toUTCString();
}

/**
 * Takes back the memory of a body once Node.js has handed all of it to the kernel, or never will. What is sent in
 * pieces, or to nobody, is left to the garbage collection.
 */
export function takeBackWhenSent({ body }: Answer, outgoing: ServerResponse | undefined): void {
  if (body instanceof Uint8Array) outgoing?.once('close', () => takeBackMemory(body));
}

/** An answer that says how long its body is, for the log as well. */
export const respondWith = (body: string, status: number, headers: Readonly<Record<string, string>>): Response =>
  new Response(body, { status, headers: { ...headers, 'content-length': `${Buffer.byteLength(body)}` } });
