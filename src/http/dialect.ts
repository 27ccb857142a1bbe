import type * as v from 'valibot';
import type { BoundEndpoint, Route } from '../rest/endpoint.ts';
import { ApiError } from '../rest/errors.ts';
import { since } from '../rest/microversions.ts';
import { invalidValue } from '../rest/schema_check.ts';
import { type Service, versionText } from '../rest/versions.ts';
import type { Rendered } from './answer.ts';
import { olderVersionHeader, requestedMinor, versionHeader } from './microversion.ts';
import { type ErrorContext, renderError } from './render_error.ts';

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

/** The dialect of upstream's Placement. */
export const placementDialect: Dialect = {
  requestedMinor: (service, headers) =>
    requestedMinor(service, headers.get(versionHeader), headers.get(olderVersionHeader(service))),
  versionHeaders: (service, minor, vary) => ({
    [versionHeader]: `${service.type} ${versionText(service, minor)}`,
    ...(vary ? { vary: versionHeader } : {}),
  }),
  checkContentType: (contentType, contentLength) => {
    if (contentLength === 0 || contentType !== '') return;
    throw new ApiError(400, 'content-type header required when content-length > 0', { vary: false });
  },
  // Upstream's text is empty, and its versions keep it.
  tooEarly: ({ method, path, since: first }, service, minor) =>
    minor < since.entityTags
      ? ''
      : `${method} ${path.replace(/:([a-z_]+)/g, '{$1}')} needs microversion ${versionText(service, first)}; this request is for ` +
        `${versionText(service, minor)}.`,
  malformedBody: (why) => `Malformed JSON: ${why}`,
  invalidBody: (issues, schema) => invalidValue(issues, schema),
  forbidden: (rule) => `Policy does not allow ${rule} to be performed.`,
  renderError,
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
