import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { openstackRange, type Version, type VersionRange } from '../placement/versions.ts';
import { type Identity, noIdentity } from '../rest/identity.ts';
import { apiOf, type ServedApi, type ServedApis } from './dialect.ts';

/** What the middleware finds out about a request before a handler gets it. */
export type Exchange = {
  readonly requestId: string;
  /** The API that the path belongs to. */
  readonly api: ServedApi;
  /** The id of the whole operation, as the client sent it, for logs. */
  readonly globalRequestId: string | undefined;
  /** The Accept header; a missing one or a bare wildcard counts as JSON. */
  readonly accept: string;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** The decoded path; as it was sent where it cannot be decoded. */
  readonly path: string;
  /** Whether the path could be decoded; otherwise it is as it was sent. */
  readonly isDecoded: boolean;
  /** The query string, with its question mark. */
  readonly search: string;
  /** Scheme and authority by which the client calls, for absolute URLs. */
  readonly origin: string;
  /** The path under which a proxy publishes the service. */
  readonly prefix: string;
  /** The address of the client: as a proxy in front says, or else that of the connection. */
  readonly client: string | undefined;
  /** The address by which clients are distinguished: as the nearest proxy says, or else that of the connection. */
  readonly sender: string | undefined;
  /** Set by the authentication; before it, `noIdentity`. */
  identity: Identity;
  /** Set by the authentication with tokens: why a token was refused, for the log. */
  refused: string | undefined;
  /**
   * Set by the authentication with Keystone or tokens: finds the identity of a long-lived request again. It returns the response to
   * send if the token is no longer valid, and undefined otherwise, also where Keystone cannot be asked
   * and the token has not expired.
   */
  authenticateAgain: (() => Promise<Response | undefined>) | undefined;
  /** Set by the version negotiation; before it, -1. */
  version: Version;
  /** The range in the version headers of the answer: of the major version of the request; OpenStack's until the version is known. */
  versions: VersionRange;
  /** Set by the dispatch: whether a success is logged at level debug only. */
  quiet: boolean;
  /** Set by `respond`: the response, and its headers, so that they need not be read from it. */
  responded: { readonly response: Response; readonly headers: Readonly<Record<string, string>> } | undefined;
};

/** What Hono's contexts carry. */
export type HonoEnv = {
  /**
   * Node.js's objects for the request; undefined where an app is called without a server, a case that Hono's types
   * leave out.
   */
  Bindings: Partial<HttpBindings>;
  Variables: { exchange: Exchange };
};

/**
 * The exchange of a new request: a new id, and the values of its headers.
 *
 * @param env Hono's environment, which has Node.js's objects for the request
 * @param trustsProxies whether `Forwarded` and `X-Forwarded-*` count
 */
export function beginExchange(
  { url, headers }: Request,
  env: unknown,
  apis: ServedApis,
  trustsProxies: boolean,
): Exchange {
  const incoming = incomingOf(env);
  const { path, isDecoded, search } = targetOf(url, incoming);
  const forwarded = trustsProxies ? readForwarded(headers) : notForwarded;
  const accept = headers.get('accept');
  const globalId = headers.get(requestIdHeader);
  const api = apiOf(apis, path);
  return {
    requestId: newRequestId(),
    api,
    globalRequestId: globalId !== null && isRequestId(globalId) ? globalId : undefined,
    accept: accept === null || accept === '' || accept === '*/*' ? 'application/json' : accept,
    contentType: headers.get('content-type') ?? '',
    contentEncoding: headers.get('content-encoding') ?? '',
    path,
    isDecoded,
    search,
    origin: forwardedOrigin(url.slice(0, pathStart(url)), forwarded),
    prefix: forwarded.prefix,
    client: forwarded.client ?? incoming?.socket.remoteAddress,
    sender: forwarded.sender ?? incoming?.socket.remoteAddress,
    identity: noIdentity,
    refused: undefined,
    authenticateAgain: undefined,
    version: -1,
    versions: openstackRange(api.service),
    quiet: false,
    responded: undefined,
  };
}

/**
 * Every answer has a new id in this header. A request may have the id of a whole operation in the same header, which
 * the log shows.
 */
export const requestIdHeader = 'x-openstack-request-id';

/** A new request id. */
export const newRequestId = (): string => `req-${randomUUID()}`;

/** Whether a text of a client has the form of a request id: other texts are not logged as one. */
const isRequestId = (text: string): boolean => /^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

/** How the client called, as the proxies in front say. */
type Forwarded = {
  readonly scheme: string | undefined;
  readonly host: string | undefined;
  /** The address of the client, for logs. A client can invent it where its proxy adds to what it sends. */
  readonly client: string | undefined;
  /** The address from which the nearest proxy has the request: no client can invent it. */
  readonly sender: string | undefined;
  /** The path under which the outermost proxy publishes the service, without a slash at its end. */
  readonly prefix: string;
};

/** For a service that trusts no proxy. */
const notForwarded: Forwarded = {
  scheme: undefined,
  host: undefined,
  client: undefined,
  sender: undefined,
  prefix: '',
};

/**
 * Reads what proxies say: `Forwarded` (RFC 7239), or without it `X-Forwarded-Proto`, `-Host` and `-For`, and in any
 * case `X-Forwarded-Prefix`. Where there are several proxies, the values of the first one count, which is nearest to
 * the client; only `sender` is what the last one says.
 */
export function readForwarded(headers: Headers): Forwarded {
  const first = (name: string): string | undefined => headers.get(name)?.split(',')[0]?.trim() || undefined;
  const forwarded = headers.get('forwarded');
  const prefix = withoutLastSlashes(first('x-forwarded-prefix') ?? '');
  if (!forwarded) {
    return {
      scheme: first('x-forwarded-proto'),
      host: first('x-forwarded-host'),
      client: first('x-forwarded-for'),
      sender: headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() || undefined,
      prefix,
    };
  }
  const elements = forwarded.split(',');
  const named = parametersOf(elements[0] ?? '');
  const sender = parametersOf(elements.at(-1) ?? '')('for');
  return { scheme: named('proto'), host: named('host'), client: named('for'), sender, prefix };
}

/** The parameters of what one proxy says in `Forwarded`, by name. */
function parametersOf(element: string): (name: string) => string | undefined {
  const parameters = new Map(
    element.split(';').map((pair): [string, string] => {
      const equals = pair.indexOf('=');
      const value = equals === -1 ? '' : pair.slice(equals + 1).trim();
      return [pair.slice(0, equals).trim().toLowerCase(), value.replace(/^"(.*)"$/, '$1')];
    }),
  );
  return (name) => parameters.get(name) || undefined;
}

/** A loop, since the time of a regular expression would grow by the square of the number of slashes elsewhere. */
function withoutLastSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

const defaultPorts: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

/**
 * Scheme and authority by which the client called, `https://cloud.example.com`: from the headers of a proxy, or else from the
 * request.
 */
function forwardedOrigin(origin: string, { scheme, host }: Forwarded): string {
  if (scheme === undefined && host === undefined) return origin;
  const [ownScheme = '', ownHost = ''] = origin.split('://');
  const actual = scheme ?? ownScheme;
  const port = defaultPorts[actual];
  const authority = host ?? ownHost;
  return `${actual}://${port !== undefined && authority.endsWith(port) ? authority.slice(0, -port.length) : authority}`;
}

/** Whether the client has disconnected: the connection broke, or the client has closed its side. */
export const hasClientLeft = ({ incoming, outgoing }: HonoEnv['Bindings']): boolean =>
  (outgoing?.destroyed ?? false) || (incoming?.socket.readableEnded ?? false);

/**
 * A signal that is aborted when the client disconnects, or has disconnected before. A client that closes its side counts as gone: the
 * server would learn that the connection is broken only by sending something.
 */
export function goneSignal({ incoming, outgoing }: HonoEnv['Bindings']): AbortSignal {
  const gone = new AbortController();
  if (outgoing?.closed || incoming?.socket.readableEnded) gone.abort();
  const leave = () => {
    incoming?.socket.off('end', leave);
    gone.abort();
  };
  // Each request of a client that does not wait for answers has one: Node.js would warn of more than ten, on standard error.
  incoming?.socket.setMaxListeners(0).once('end', leave);
  outgoing?.once('close', leave);
  return gone.signal;
}

/** Node.js's request, where there is a socket: node-server puts it into Hono's environment. */
export const incomingOf = (env: unknown): IncomingMessage | undefined =>
  typeof env === 'object' && env !== null && 'incoming' in env
    ? (env.incoming as IncomingMessage) // by node-server's HttpBindings
    : undefined;

/** The index in an absolute URL at which the path begins, after scheme and authority. */
const pathStart = (url: string): number => {
  const slash = url.indexOf('/', url.indexOf('//') + 2);
  return slash === -1 ? url.length : slash;
};

/**
 * The target of a request as it was sent. The URL of a Request has been normalised (`/%2e%2e/` is gone), so where there
 * is a socket the target is taken from the request line.
 */
export function targetOf(url: string, incoming: IncomingMessage | undefined): RequestTarget {
  const raw = incoming?.url?.startsWith('/') ? incoming.url : url.slice(pathStart(url));
  const end = raw.search(/[?#]/);
  const path = end === -1 ? raw : raw.slice(0, end);
  return { ...decoded(path), search: end === -1 ? '' : raw.slice(end).replace(/#.*$/s, '') };
}

/** The path and the query string of a request. */
type RequestTarget = {
  /** The decoded path; as it was sent where it cannot be decoded. */
  readonly path: string;
  readonly isDecoded: boolean;
  /** The query string, with its question mark. */
  readonly search: string;
};

function decoded(path: string): Pick<RequestTarget, 'path' | 'isDecoded'> {
  if (!path.includes('%')) return { path, isDecoded: true };
  try {
    return { path: decodeURIComponent(path), isDecoded: true };
  } catch {
    return { path, isDecoded: false };
  }
}

/**
 * The path as upstream's router sees it: without one trailing newline. A percent sign that is left after decoding is
 * escaped again, since Hono decodes the parameters of the path.
 */
export const routedPath = ({ path }: RequestTarget): string => path.replace(/\n$/, '').replaceAll('%', '%25') || '/';
