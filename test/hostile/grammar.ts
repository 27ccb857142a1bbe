import type { Random } from '../races/random.ts';
import { bodyText, queryText } from './bodies.ts';
import { classes, number, numbers, some, texts, traits, uuid } from './words.ts';

/*
 * Requests that are nearly right: made from what the API understands, and then spoilt in some places, as bytes, as text
 * or as structure.
 */

/** A request that is nearly right. */
export type Hostile = {
  readonly bytes: Buffer;
  /** Where the target begins, behind its slash, and where it ends. */
  readonly target: readonly [start: number, end: number];
  /** Where a body without chunks begins; the length of the bytes if there is none. */
  readonly bodyStart: number;
  readonly isHead: boolean;
  /** Whether its length or chunks say something else than what is sent: what follows may be read as its body, or the reverse. */
  readonly isMisframed: boolean;
  /** Whether the answer may take as long as the client waits. */
  readonly mayWait: boolean;
};

/** A request from the grammar, on a connection that stays open. */
export function hostileRequest(random: Random): Hostile {
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
  const length = random.percent(97) ? `${payload.length}` : number(random);
  const chunked = isChunked ? chunks(payload, random) : undefined;
  const odd = some(random, random.percent(25) ? 2 : 0, () => oddHeader(random));
  const headers = [
    'Host: localhost',
    `X-Auth-Token: ${random.percent(97) ? 'admin' : random.pick(texts)}`,
    `OpenStack-API-Version: placement ${random.percent(97) ? (random.percent(50) ? `2.${random.below(7)}` : `1.${random.below(41)}`) : random.pick([...numbers, ...texts, 'latest'])}`,
    ...(body === '' ? [] : [`Content-Type: ${random.percent(95) ? 'application/json' : random.pick(texts)}`]),
    ...(isChunked ? ['Transfer-Encoding: chunked'] : body === '' ? [] : [`Content-Length: ${length}`]),
    ...odd,
  ];
  const start = Buffer.byteLength(`${method} /`);
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
  const bytes = Buffer.concat([head, chunked?.bytes ?? payload]);
  return {
    bytes,
    target: [start, Math.max(start, start - 1 + Buffer.byteLength(target))],
    bodyStart: isChunked ? bytes.length : head.length,
    isHead: method === 'HEAD',
    isMisframed:
      (chunked?.isMisframed ?? (body !== '' && length !== `${payload.length}`)) ||
      odd.some((line) => /^(Transfer-Encoding|Content-Length|Connection)/.test(line)),
    mayWait: route === '/changes',
  };
}

const oddHeader = (random: Random): string =>
  random.pick([
    `If-Match: ${random.pick(['*', 'W/"0"', '"', ',', `W/"${'a'.repeat(128)}"`, ...texts])}`,
    `Accept: ${random.pick(['application/json', 'text/event-stream', '*/*;q=0', 'a/b;q=2', ...texts])}`,
    `Prefer: wait=${random.pick(['0', '-1', 'x', '61', '1e9'])}`,
    `X-Forwarded-Host: ${random.pick(texts)}`,
    `X-Openstack-Request-Id: ${random.pick(texts)}`,
    `Expect: ${random.pick(['100-continue', '100-continue', '100-continue', ...texts])}`,
    `Origin: ${random.pick(texts)}`,
    `X-${random.pick(texts)}: ${random.pick(texts)}`,
    `Content-Encoding: gzip`,
    `Connection: ${random.pick(['close', 'keep-alive', 'upgrade', ...texts])}`,
    `Host: ${random.pick(['elsewhere', ...texts])}`,
    `Transfer-Encoding: ${random.pick(['chunked', 'identity', ...texts])}`,
    `Content-Length: ${number(random)}`,
  ]);

function chunks(payload: Buffer, random: Random): { readonly bytes: Buffer; readonly isMisframed: boolean } {
  const parts: Buffer[] = [];
  let isMisframed = false;
  for (let start = 0; start < payload.length; ) {
    const size = 1 + random.below(random.percent(50) ? 40 : 2000);
    const part = payload.subarray(start, start + size);
    const right = part.length.toString(16);
    const declared = random.percent(97) ? right : number(random);
    isMisframed ||= declared !== right;
    parts.push(Buffer.from(`${declared}${random.percent(95) ? '' : ';a=b'}\r\n`), part, Buffer.from('\r\n'));
    start += size;
  }
  const end = random.percent(95) ? '0\r\n\r\n' : '0\r\nX-Trailer: a\r\n\r\n';
  return { bytes: Buffer.concat([...parts, Buffer.from(end)]), isMisframed };
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
    random.pick(['/healthcheck', '/readyz', '/readyz/', '/healthcheck?', random.percent(50) ? '/metrics' : '/console']),
    `/${random.pick(texts)}`,
    '//',
    '/./..',
  ]);
}
