import type * as v from 'valibot';
import type { ApiError } from '../request/errors.ts';
import type { BoundEndpoint, Route } from '../rest/endpoint.ts';
import type { Service } from '../rest/versions.ts';

/** How an API words what every API says. Placement and Nova have different frameworks upstream. */
export type Dialect = {
  /** The minor version that a request asks for. @throws ApiError 400 or 406. */
  readonly requestedMinor: (service: Service, headers: Headers) => number;
  /** The headers that tell the version of an answer, with `Vary` unless `vary` is false. */
  readonly versionHeaders: (service: Service, minor: number, vary: boolean) => Readonly<Record<string, string>>;
  /** @throws ApiError where a request with this Content-Type (empty where it has none) is refused. */
  readonly checkContentType: (contentType: string, contentLength: number) => void;
  /** The error text for a request with a version before the first one of the endpoint. */
  readonly tooEarly: (endpoint: Route, service: Service, minor: number) => string;
  /** The error text for a body that is not JSON. @param why what the parser says */
  readonly malformedBody: (why: string) => string;
  /** The error for a body that the schema of an endpoint does not allow. It names the place and the value. */
  readonly invalidBody: (
    issues: readonly [v.BaseIssue<unknown>, ...v.BaseIssue<unknown>[]],
    schema: v.GenericSchema,
  ) => ApiError;
  /** The error text where the policy does not allow a request. */
  readonly forbidden: (rule: string) => string;
  readonly renderError: (error: ApiError, context: ErrorContext) => Rendered;
};

/** One of the APIs that the app serves. */
export type ServedApi = {
  /** The beginning of its paths, `/compute`; empty for the API that has all other paths. */
  readonly root: string;
  /** Paths that need no token, so that clients can discover the versions. */
  readonly openPaths: readonly string[];
  readonly endpoints: readonly BoundEndpoint[];
  /** The versions that are offered. */
  readonly service: Service;
  readonly dialect: Dialect;
};

/** The API of a path; the last API has all paths that belong to no other. */
export function apiOf(apis: readonly [...ServedApi[], ServedApi], path: string): ServedApi {
  const [last] = apis.slice(-1);
  const found = apis.find(({ root }) => path === root || path.startsWith(`${root}/`)) ?? last;
  if (found === undefined) throw new Error('No API is served.');
  return found;
}

/** What a response is made of. */
export type Rendered = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | string | null;
};

/** What the answer to an error depends on besides the error. */
export type ErrorContext = {
  readonly method: string;
  readonly accept: string;
  readonly contentType: string;
  readonly requestId: string;
  /** The negotiated version; undefined where the negotiation failed or had not begun. */
  readonly minorVersion: number | undefined;
  readonly versions: { readonly min: string; readonly max: string };
};
