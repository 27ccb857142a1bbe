import type { HttpBindings } from '@hono/node-server';
import { type Identity, noIdentity } from '../rest/identity.ts';
import { incomingOf, pathStart, targetOf } from './path.ts';
import { forwardedOrigin, notForwarded, readForwarded } from './proxy_headers.ts';
import { isRequestId, newRequestId, requestIdHeader } from './request_id.ts';
import { apiOf, type ServedApi } from './served_api.ts';

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
  /** The decoded path. */
  readonly path: string;
  /** The query string, with its question mark. */
  readonly search: string;
  /** Scheme and authority by which the client calls, for absolute URLs. */
  readonly origin: string;
  /** The path under which a proxy publishes the service. */
  readonly prefix: string;
  /** The address of the client: as a proxy in front says, or else that of the connection. */
  readonly client: string | undefined;
  /** The address by which clients are told apart: as the nearest proxy says, or else that of the connection. */
  readonly sender: string | undefined;
  /** Set by the authentication; before it, `noIdentity`. */
  identity: Identity;
  /**
   * Set by the authentication with Keystone: finds the identity again, for a request that lasts. It returns the response to send if the
   * token is no longer valid, and undefined otherwise, also where Keystone cannot be asked.
   */
  authenticateAgain: (() => Promise<Response | undefined>) | undefined;
  /** Set by the version negotiation; before it, -1. */
  version: number;
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
 * The exchange of a new request: a fresh id, and what its headers say.
 *
 * @param env Hono's environment, which has Node.js's objects for the request
 * @param believesProxies whether `Forwarded` and `X-Forwarded-*` count
 */
export function beginExchange(
  { url, headers }: Request,
  env: unknown,
  apis: readonly [...ServedApi[], ServedApi],
  believesProxies: boolean,
): Exchange {
  const incoming = incomingOf(env);
  const { path, search } = targetOf(url, incoming);
  const forwarded = believesProxies ? readForwarded(headers) : notForwarded;
  const accept = headers.get('accept');
  const globalId = headers.get(requestIdHeader);
  return {
    requestId: newRequestId(),
    api: apiOf(apis, path),
    globalRequestId: globalId !== null && isRequestId(globalId) ? globalId : undefined,
    accept: accept === null || accept === '' || accept === '*/*' ? 'application/json' : accept,
    contentType: headers.get('content-type') ?? '',
    path,
    search,
    origin: forwardedOrigin(url.slice(0, pathStart(url)), forwarded),
    prefix: forwarded.prefix,
    client: forwarded.client ?? incoming?.socket.remoteAddress,
    sender: forwarded.sender ?? incoming?.socket.remoteAddress,
    identity: noIdentity,
    authenticateAgain: undefined,
    version: -1,
    quiet: false,
    responded: undefined,
  };
}
