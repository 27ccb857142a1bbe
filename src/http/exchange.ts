import type { HttpBindings } from '@hono/node-server';
import type { Identity } from '../api/identity.ts';
import type { ServedApi } from './served_api.ts';

/** What the layers find out about a request, each its part, before a handler sees it. */
export type Exchange = {
  readonly requestId: string;
  /** The API that the path belongs to. */
  readonly api: ServedApi;
  /** The id that the caller gave the whole operation, for logs. */
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
  /** The address that the request comes from, as far as a proxy tells. */
  readonly client: string | undefined;
  /** Filled by the authentication; before it, nobody. */
  identity: Identity;
  /** Filled by the version negotiation; before it, -1. */
  version: number;
  /** Filled by the dispatch: whether a success is logged at level debug only. */
  quiet: boolean;
};

export type HonoEnv = {
  /** What Node.js has of the request; undefined where an app is asked without a server, which Hono's types do not know. */
  Bindings: Partial<HttpBindings>;
  Variables: { exchange: Exchange };
};
