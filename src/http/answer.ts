import type { Answer } from '../api/endpoint.ts';

/** Microversion 1.15 brought last-modified and cache-control headers. */
const cacheHeadersSince = 15;

export function renderAnswer(answer: Answer, minorVersion: number, origin: string): Response {
  const headers: Record<string, string> = {};
  if (answer.location !== undefined) headers.location = origin + answer.location;
  if (answer.etag !== undefined) headers.etag = answer.etag;
  if (answer.lastModified !== undefined && minorVersion >= cacheHeadersSince) {
    headers['cache-control'] = 'no-cache';
    if (answer.lastModified !== null) headers['last-modified'] = answer.lastModified.toUTCString();
  }
  const body = answer.text ?? (answer.json === undefined ? null : JSON.stringify(answer.json));
  if (body !== null) headers['content-type'] = 'application/json';
  // What is made while it is sent has no length yet.
  if (typeof body !== 'string') return new Response(body, { status: answer.status, headers });
  return respondWith(body, answer.status, headers);
}

/** An answer that says how long its body is, for the log as well. */
export const respondWith = (body: string, status: number, headers: Readonly<Record<string, string>>): Response =>
  new Response(body, { status, headers: { ...headers, 'content-length': `${Buffer.byteLength(body)}` } });
