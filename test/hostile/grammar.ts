import type { Random } from '../races/random.ts';
import { bodyText, queryText } from './bodies.ts';
import { classes, number, numbers, some, texts, traits, uuid } from './words.ts';

/*
 * Requests that are nearly right: made from what the API understands, and then spoilt in some places, as bytes, as text
 * or as structure.
 */

/** Bytes that a connection sends. */
export type Hostile = {
  readonly bytes: Buffer;
  /** Where the bytes are sent in parts, the place of the cut. */
  readonly cutAt?: number;
  /** Whether the client ends its half of the connection behind them. */
  readonly isHalfClosed: boolean;
};

/** A request that is nearly right, or several on one connection. */
export function hostileRequest(random: Random): Hostile {
  const count = random.percent(10) ? 2 + random.below(6) : 1;
  let bytes: Buffer = Buffer.concat(
    Array.from({ length: count }, (_, place) => oneRequest(random, place === count - 1)),
  );
  for (let left = random.percent(30) ? 1 + random.below(4) : 0; left > 0; left -= 1) bytes = spoilt(bytes, random);
  return {
    bytes,
    ...(random.percent(15) ? { cutAt: random.below(bytes.length + 1) } : {}),
    isHalfClosed: random.percent(10),
  };
}

/** A request that is right. */
export function plainRequest(method: string, path: string, json: unknown): Hostile {
  const body = JSON.stringify(json);
  const head = ['Host: localhost', 'X-Auth-Token: admin', 'OpenStack-API-Version: placement 1.39', 'Connection: close'];
  const more = ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`];
  const text = `${method} ${path} HTTP/1.1\r\n${[...head, ...more].join('\r\n')}\r\n\r\n${body}`;
  return { bytes: Buffer.from(text), isHalfClosed: false };
}

/** @param isLast whether it asks the server to close the connection */
function oneRequest(random: Random, isLast: boolean): Buffer {
  const route = pathText(random);
  const isRead = /candidates|usages|changes|summaries|healthcheck|readyz|metrics|^\/$|^\/traits$/.test(route);
  const usual = isRead ? (['GET'] as const) : (['GET', 'PUT', 'PUT', 'POST', 'DELETE'] as const);
  const method = random.pick(random.percent(95) ? usual : ['PATCH', 'HEAD', 'OPTIONS', 'get', ...texts]);
  const hasBody = random.percent(method === 'PUT' || method === 'POST' ? 97 : 3);
  const body = hasBody ? bodyText(random, route) : '';
  const path = route + (random.percent(method === 'GET' ? 70 : 5) ? `?${queryText(random)}` : '');
  const target = random.percent(90) ? encodeURI(path.toWellFormed()).replaceAll('%25', '%') : path;
  const payload = Buffer.from(body, random.percent(95) ? 'utf8' : 'latin1');
  const isChunked = random.percent(10);
  const headers = [
    'Host: localhost',
    ...(isLast && random.percent(97) ? ['Connection: close'] : []),
    `X-Auth-Token: ${random.percent(97) ? 'admin' : random.pick(texts)}`,
    `OpenStack-API-Version: placement ${random.percent(97) ? `1.${random.percent(50) ? 39 + random.below(7) : random.below(46)}` : random.pick([...numbers, ...texts, 'latest'])}`,
    ...(body === '' ? [] : [`Content-Type: ${random.percent(95) ? 'application/json' : random.pick(texts)}`]),
    ...(isChunked
      ? ['Transfer-Encoding: chunked']
      : body === ''
        ? []
        : [`Content-Length: ${random.percent(97) ? payload.length : number(random)}`]),
    ...some(random, random.percent(25) ? 2 : 0, () =>
      random.pick([
        `If-Match: ${random.pick(['*', 'W/"0"', '"', ',', `W/"${'a'.repeat(128)}"`, ...texts])}`,
        `Accept: ${random.pick(['application/json', 'text/event-stream', '*/*;q=0', 'a/b;q=2', ...texts])}`,
        `Prefer: wait=${random.pick(['0', '-1', 'x', '61', '1e9'])}`,
        `X-Forwarded-Host: ${random.pick(texts)}`,
        `X-Openstack-Request-Id: ${random.pick(texts)}`,
        `Expect: ${random.pick(['100-continue', ...texts])}`,
        `Origin: ${random.pick(texts)}`,
        `X-${random.pick(texts)}: ${random.pick(texts)}`,
        `Content-Encoding: gzip`,
      ]),
    ),
  ];
  const head = `${method} ${target} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), isChunked ? chunks(payload, random) : payload]);
}

function chunks(payload: Buffer, random: Random): Buffer {
  const parts: Buffer[] = [];
  for (let start = 0; start < payload.length; ) {
    const size = 1 + random.below(40);
    const part = payload.subarray(start, start + size);
    const told = random.percent(97) ? part.length.toString(16) : number(random);
    parts.push(Buffer.from(`${told}${random.percent(95) ? '' : ';a=b'}\r\n`), part, Buffer.from('\r\n'));
    start += size;
  }
  return Buffer.concat([...parts, Buffer.from(random.percent(95) ? '0\r\n\r\n' : '0\r\nX-Trailer: a\r\n\r\n')]);
}

function pathText(random: Random): string {
  const provider = `/resource_providers/${uuid(random)}`;
  return random.pick([
    '/',
    '/resource_providers',
    provider,
    `${provider}/inventories`,
    `${provider}/inventories/${random.pick(classes)}`,
    `${provider}/traits`,
    `${provider}/aggregates`,
    `${provider}/usages`,
    `${provider}/allocations`,
    '/traits',
    `/traits/${random.pick([...traits, ...texts])}`,
    '/resource_classes',
    `/resource_classes/${random.pick([...classes, ...texts])}`,
    '/allocations',
    `/allocations/${uuid(random)}`,
    '/allocation_candidates',
    '/allocation_candidates/explanation',
    '/allocation_candidates/count',
    '/usages',
    '/consumers',
    `/consumers/${uuid(random)}`,
    `/consumers/${uuid(random)}/term`,
    '/provider_summaries',
    '/changes',
    '/reshaper',
    '/healthcheck',
    '/readyz',
    '/metrics',
    `/${random.pick(texts)}`,
    '//',
    '/./..',
  ]);
}

/** Changes some bytes. */
function spoilt(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1);
  const length = random.below(8);
  const piece = bytes.subarray(at, at + length);
  const junk = Buffer.from(Array.from({ length: random.below(4) }, () => random.below(256)));
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at + length)];
  return Buffer.concat(
    random.pick([
      [before, after],
      [before, junk, after],
      [before, piece, piece, after],
      [before, Buffer.from(random.pick([...numbers, ...texts])), after],
      [before],
    ]),
  );
}
