import http from 'node:http';
import https from 'node:https';
import type { Value } from './parse.ts';

export type Request = {
  readonly method: string;
  /** An absolute URL. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
};

export type Response = {
  readonly status: number;
  /** By lower-case name. Several headers of one name are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The parsed body, if its type is JSON and it is not empty. */
  readonly json: Value | undefined;
};

/** A request and its response, for observers. */
export type Exchange = { readonly request: Request; readonly response: Response };

/** One connection that stays open, because the tests of a file run one after another. */
export const keptConnection = (): http.Agent => new http.Agent({ keepAlive: true, maxSockets: 1 });

/**
 * Sends a request with node:http. Unlike `fetch`, it accepts any header name, a body of GET, and a Content-Length that
 * is not a number.
 *
 * @throws Error if there is no HTTP response, or if its body has the type JSON and is not JSON
 */
export async function send(request: Request, agent: http.Agent): Promise<Response> {
  const url = splitUrl(request.url);
  const body = Buffer.from(request.body);
  const names = new Set(Object.keys(request.headers).map((name) => name.toLowerCase()));
  const secure = url.scheme === 'https';
  const sent = {
    method: request.method,
    host: url.host,
    port: url.port,
    path: requestTarget(url.target),
    headers: {
      // gabbi's HTTP client sends the length of every body, also of an empty one.
      ...(names.has('content-length') ? {} : { 'content-length': `${body.length}` }),
      ...request.headers,
    },
    ...(secure ? { rejectUnauthorized: false } : { agent }),
  };
  for (let attempt = 1; ; attempt += 1) {
    const outgoing = secure ? https.request(sent) : http.request(sent);
    try {
      return await exchange(outgoing, body);
    } catch (error) {
      // The server may close an idle connection at the moment when the next request uses it.
      if (!outgoing.reusedSocket || attempt === 2 || !(error instanceof Error) || !isReset(error)) throw error;
    }
  }
}

const isReset = (error: NodeJS.ErrnoException): boolean => error.code === 'ECONNRESET' || error.code === 'EPIPE';

function exchange(outgoing: http.ClientRequest, body: Buffer): Promise<Response> {
  return new Promise((resolve, reject) => {
    outgoing.setTimeout(60_000, () => outgoing.destroy(new Error('The server did not answer within 60 s.')));
    outgoing.once('error', reject);
    outgoing.once('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.once('error', reject);
      incoming.once('end', () => {
        try {
          resolve(read(incoming, Buffer.concat(chunks).toString('utf8')));
        } catch (error) {
          reject(error);
        }
      });
    });
    outgoing.end(body);
  });
}

function read(incoming: http.IncomingMessage, text: string): Response {
  const status = incoming.statusCode ?? 0;
  const headers: Record<string, string> = { status: `${status}`, reason: incoming.statusMessage ?? '' };
  for (const [name, values] of Object.entries(incoming.headersDistinct)) headers[name] = values?.join(', ') ?? '';
  if (text === '' || !isJson(headers['content-type'] ?? '')) return { status, headers, text, json: undefined };
  try {
    return { status, headers, text, json: JSON.parse(text) as Value }; // JSON has no other values
  } catch (error) {
    throw new Error(`The body of the response is not JSON: ${text}`, { cause: error });
  }
}

/** gabbi's rule: `application/json` and `...+json` are JSON. */
export function isJson(contentType: string): boolean {
  const type = contentType.split(';', 1).join('').trim().toLowerCase();
  return type === 'application/json' || type.endsWith('+json');
}

export type UrlParts = {
  readonly scheme: string;
  readonly netloc: string;
  readonly host: string;
  readonly port: string;
  /** Path and query, as written. */
  readonly target: string;
};

/** Splits an absolute URL, and keeps the path as written. WHATWG's URL would change it. */
export function splitUrl(url: string): UrlParts {
  const match = /^(https?):\/\/([^/?#]+)([^#]*)/i.exec(url);
  if (match === null) throw new Error(`This is not an absolute http URL: ${url}`);
  const [, scheme = '', netloc = '', target = ''] = match;
  const { hostname, port } = new URL(`${scheme}://${netloc}`);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return {
    scheme: scheme.toLowerCase(),
    netloc,
    host,
    port: port || (scheme.toLowerCase() === 'https' ? '443' : '80'),
    target: target.startsWith('/') ? target : `/${target}`,
  };
}

/**
 * Percent-encodes the characters that RFC 3986 does not allow in a path or query, also a `%` that does not begin an
 * escape.
 */
function requestTarget(target: string): string {
  const percents = target.match(/%/g)?.length ?? 0;
  const encoded = target.match(/%[0-9a-f]{2}/gi)?.length ?? 0;
  const unsafe = percents === encoded ? /[^\w.~!$&'()*+,;=:@/?%-]+/g : /[^\w.~!$&'()*+,;=:@/?-]+/g;
  return target.replace(unsafe, (text) =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
}
