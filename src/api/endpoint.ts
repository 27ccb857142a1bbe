import type * as v from 'valibot';
import type { EntityTag, IfMatch } from '../placement/entity_tag.ts';
import type { Query } from '../query/query_string.ts';
import type { Identity } from './identity.ts';
import type { JsonChunks } from './json_body.ts';
import type { Parts } from './parts.ts';

/** The methods that endpoints have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A request as a handler sees it: authenticated, its version negotiated, its media types checked. */
export type ApiRequest = {
  /** The minor microversion: 39 for `placement 1.39`. */
  readonly version: number;
  readonly identity: Identity;
  /** The part of the path that the pattern names. */
  param(name: string): string;
  /** Parsed when it is first asked for. @throws ApiError 400 where it cannot be */
  readonly query: () => Query;
  /** What the resource must be for the request to be done, where the client says so and the endpoint takes it. */
  readonly ifMatch: IfMatch | undefined;
  /** The body, held against a schema; see readJson. */
  json<Schema extends v.GenericSchema>(schema: Schema): Promise<v.InferOutput<Schema>>;
  /** Scheme and authority by which the client calls, for links that are absolute. */
  readonly origin: string;
  /** What links in answers begin with: the prefix under which a proxy publishes the service, mostly empty. */
  readonly prefix: string;
};

/** One method of one path, from one microversion to another: the differences between versions are data that can be listed. */
export type Endpoint = {
  readonly method: Method;
  /** A Hono pattern. */
  readonly path: string;
  /** The minor version that brought it, and the last one that has it. */
  readonly since: number;
  readonly until?: number;
  /** How older versions answer: 404 unless said otherwise. */
  readonly absentStatus?: 404 | 405;
  /** The rule that lets a request through; absent where everybody may. */
  readonly policy?: string;
  readonly policyTarget?: (request: ApiRequest) => PolicyTarget;
  /** It answers JSON only: 406 to a client that does not accept that. */
  readonly answersJson?: boolean;
  /** It wants a JSON body. */
  readonly wantsJson?: boolean;
  /** The minor version from which on it takes If-Match; below it, the header is refused. Absent where it is ignored. */
  readonly ifMatchSince?: number;
  /** Upstream looks at the media types of these before the version. */
  readonly mediaTypesFirst?: boolean;
  /** Requests come by the thousand and tell nothing: their successes are logged at level debug. */
  readonly quiet?: boolean;
  readonly handle: (request: ApiRequest, parts: Parts) => Answer | Promise<Answer>;
};

/** What a policy rule is asked about; without one, the project and user of the request. */
export type PolicyTarget = { readonly project_id: string | null };

/** What a handler answers: rendered in one place, with what every answer carries at the request's microversion. */
export type Answer = {
  readonly status: number;
  /** The body as a value, or as JSON that is ready (whole, or as it is made). */
  readonly json?: unknown;
  readonly body?: Uint8Array<ArrayBuffer> | JsonChunks;
  /** A path of this API; it is sent as an absolute URL. */
  readonly location?: string;
  /**
   * When what is answered was last modified, for `Last-Modified` and `Cache-Control: no-cache` from 1.15. Null sends the
   * second without the first; absent sends neither.
   */
  readonly lastModified?: Date | null;
  /** The entity tag of what is answered, for the header. */
  readonly etag?: EntityTag | undefined;
};

/** Done, and nothing to show. */
export const noContent: Answer = { status: 204 };
