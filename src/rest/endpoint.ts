import type * as v from 'valibot';
import type { Owner } from '../placement/consumer.ts';
import type { EntityTag, IfMatch } from '../placement/entity_tag.ts';
import type { Version } from '../placement/versions.ts';
import type { ApiError } from '../request/errors.ts';
import type { Turns } from '../request/turns.ts';
import type { Identity } from './identity.ts';
import type { JsonChunks } from './json_body.ts';
import type { Query } from './query_string.ts';

/** The methods that endpoints have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A request as a handler sees it: authenticated, its version negotiated, its media types checked. */
export type ApiRequest = {
  /** The version: 1039 for `placement 1.39`. */
  readonly version: Version;
  readonly identity: Identity;
  /**
   * Whose consumers a rule of the policy allows this request; undefined for all.
   *
   * @throws ApiError 403 where the rule allows the request for no owner
   */
  readonly allowedOwners: (rule: string) => AllowsOwner | undefined;
  /** Whether a policy file has a rule of this name, instead of the default. */
  readonly isRuleWritten: (rule: string) => boolean;
  /** The error for a request that a rule does not allow. @param why a sentence that is added from 2.2 on */
  readonly forbidden: (rule: string, why?: string) => ApiError;
  /** Of an endpoint with `ownerDecides`: whose consumers its rule allows this request; undefined for all. */
  readonly owners: AllowsOwner | undefined;
  /**
   * The error that a long-lived request would get now as a new one: 401 or 403 where its token is no longer valid, or a rule of the policy
   * no longer allows it, 503 where that cannot be found out. Undefined while it may go on. Where Keystone cannot be asked, the token
   * counts as valid until it expires. Remembered answers of Keystone count, so that this may be called often.
   */
  readonly refusalNow: (rule: string) => Promise<ApiError | undefined>;
  /** Requires of a long-lived request that its token is still valid, as `refusalNow` finds out. @throws ApiError 401 */
  readonly requireToken: () => Promise<void>;
  /** The segment of the path that has this name in the pattern. */
  param(name: string): string;
  /** The parsed query string; parsed by the first call. @throws ApiError 400 if it cannot be parsed */
  readonly query: () => Query;
  /** The condition of If-Match on the resource, where the client sends one and the endpoint takes it. */
  readonly ifMatch: IfMatch | undefined;
  /** Reads the body, and checks it against a schema; see openJsonBody. */
  json<Schema extends v.GenericSchema>(schema: Schema): Promise<v.InferOutput<Schema>>;
  /** The text of the body that `json` has read. */
  bodyText(): string;
  /** Checks what was made of the body. @throws ApiError 400 as `json` */
  check<Schema extends v.GenericSchema>(value: unknown, schema: Schema): Promise<v.InferOutput<Schema>>;
  /** The one of these media types that the client prefers, the first of equal ones; undefined if it accepts none. */
  readonly prefers: <T extends string>(offers: readonly T[]) => T | undefined;
  /** A header of the request; undefined where it has none. */
  readonly header: (name: string) => string | undefined;
  /**
   * A signal that is aborted where the client leaves before it has its whole answer; also when that has been sent. It is aborted from
   * the beginning where the client has left already.
   */
  readonly gone: () => AbortSignal;
  /** The turns in which all work of the request is done that may take long. */
  readonly turns: () => Turns;
  /** The address of the client, or the network of an IPv6 address: it distinguishes clients that may be of the same user. */
  readonly network: () => string;
  /** Scheme and authority by which the client calls, for links that are absolute. */
  readonly origin: string;
  /** What links in answers begin with: the prefix under which a proxy publishes the service, mostly empty. */
  readonly prefix: string;
};

/**
 * One method of one path, from one microversion to another. The differences between versions are data, so they can be
 * listed.
 */
export type Route = {
  readonly method: Method;
  /** A Hono pattern. */
  readonly path: string;
  /** The first and the last version that have it. */
  readonly since: Version;
  readonly until?: Version;
  /** The status at versions that do not have the route; 404 by default. */
  readonly absentStatus?: 404 | 405;
  /** The policy rule that must allow the request; without one, every request is allowed. */
  readonly policy?: string;
  readonly policyTarget?: (request: ApiRequest) => PolicyTarget;
  /**
   * Where the rule depends on the owner of what the request is about, the handler asks `owners` of the request; `by the body`: the handler
   * checks the rules that the body needs by `allowedOwners`.
   */
  readonly ownerDecides?: boolean | 'by the body';
  /** Whether it answers JSON only: 406 to a client that does not accept JSON. */
  readonly answersJson?: boolean;
  /** With `answersJson`: whether it also answers by a stream of events, `text/event-stream`. */
  readonly answersEvents?: boolean;
  /** Whether it reads the query. Otherwise parameters are ignored in OpenStack's versions, as upstream does, and refused in our own. */
  readonly takesParameters?: boolean;
  /** Whether it needs a JSON body: 415 for other media types. */
  readonly wantsJson?: boolean;
  /**
   * The version from which on it takes If-Match; at older versions the header is refused. Without it, the header
   * is ignored.
   */
  readonly ifMatchSince?: Version;
  /** Whether media types are checked before the version, as upstream does for some paths. */
  readonly mediaTypesFirst?: boolean;
  /** Whether HEAD is answered as GET, without the body; else it is a 405, as upstream's. */
  readonly answersHead?: boolean;
  /** Whether successes are logged at level debug only, since there are thousands of such requests. */
  readonly quiet?: boolean;
};

/**
 * A route, and the function that answers its requests. `Dependencies` is what the handlers of an API work with: a database, a
 * fleet.
 */
export type Endpoint<Dependencies> = Route & {
  readonly handle: (request: ApiRequest, dependencies: Dependencies) => Answer | Promise<Answer>;
};

/** An endpoint whose handler has its dependencies already. The server knows no more of any API. */
export type BoundEndpoint = Route & { readonly handle: (request: ApiRequest) => Answer | Promise<Answer> };

/** What a policy rule compares with the identity: the project and the user that the request is about; null for none. */
export type PolicyTarget = { readonly project_id: string | null; readonly user_id?: string };

/** Whether a request may do something to what an owner has. */
export type AllowsOwner = (owner: Owner) => boolean;

/**
 * What a handler returns. The server renders it, with the headers that every answer has at the microversion of the
 * request.
 */
export type Answer = {
  readonly status: number;
  /** The body as a value; or `body`, JSON text that is complete, or comes in chunks. */
  readonly json?: unknown;
  readonly body?: string | Uint8Array<ArrayBuffer> | JsonChunks;
  /**
   * Instead of a body: a stream of server-sent events, which the endpoint ends.
   *
   * @param cutOff closes the connection of a client that does not read
   */
  readonly events?: (cutOff: () => void) => ReadableStream<Uint8Array<ArrayBuffer>>;
  /** A path of this API; it is sent as an absolute URL. */
  readonly location?: string;
  /**
   * When the resource was last modified. From 1.15 the answer has `Last-Modified` and `Cache-Control: no-cache`; with
   * null only the second, without a value neither.
   */
  readonly lastModified?: Date | null;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The entity tag of the resource, for the header `ETag`. */
  readonly etag?: EntityTag | undefined;
  /**
   * Takes back the memory of the body, to use it for another answer. It is called at most once, when no program reads
   * the body any more; where that is never known, the garbage collection takes the memory.
   */
  readonly release?: () => void;
};

/** A success without a body. */
export const noContent: Answer = { status: 204 };
