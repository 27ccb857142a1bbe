import { STATUS_CODES } from 'node:http';
import type * as v from 'valibot';
import { since } from '../placement/microversions.ts';
import {
  majorOf,
  offers,
  openstackRange,
  rangeOf,
  type Service,
  type Version,
  type VersionRange,
  versionOf,
  versionOfText,
  versionText,
  versionTexts,
} from '../placement/versions.ts';
import { ApiError } from '../request/errors.ts';
import type { BoundEndpoint, Route } from '../rest/endpoint.ts';
import { invalidValue } from '../rest/schema_check.ts';
import type { Issues } from '../rest/schema_complaint.ts';
import { remembering } from '../text/cache.ts';
import { bestOffer } from './accept.ts';

/** How an API words what every API says. Placement and Nova have different frameworks upstream. */
export type Dialect = {
  /** The version in a request; undefined if the request names none. @throws ApiError 400 or 406 */
  readonly requestedVersion: (service: Service, headers: Headers) => Version | undefined;
  /** The headers with the version of an answer, with `Vary` unless `vary` is false. */
  readonly versionHeaders: (service: Service, version: Version, vary: boolean) => Readonly<Record<string, string>>;
  /** @throws ApiError where a request with this Content-Type (empty where it has none) is refused. */
  readonly checkContentType: (contentType: string, contentLength: number) => void;
  /** The error text for a request with a version before the first one of the endpoint. */
  readonly tooEarly: (endpoint: Route, service: Service, version: Version) => string;
  /** The error text for a body that is not JSON. @param why the message of the parser */
  readonly malformedBody: (why: string) => string;
  /** The error for a body that the schema of an endpoint does not allow. It names the path and the value. */
  readonly invalidBody: (issues: Issues, schema: v.GenericSchema) => ApiError;
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

/** The APIs that the app serves. The last API has all paths that belong to no other. */
export type ServedApis = readonly [...ServedApi[], ServedApi];

/** The API of a path. */
export function apiOf(apis: ServedApis, path: string): ServedApi {
  const [last] = apis.slice(-1);
  const found = apis.find(({ root }) => path === root || path.startsWith(`${root}/`)) ?? last;
  if (found === undefined) throw new Error('No API is served.');
  return found;
}

/** The parts of a response. */
export type Rendered = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | string | null;
};

/** What the answer to an error depends on besides the error. */
type ErrorContext = {
  readonly method: string;
  readonly accept: string;
  readonly contentType: string;
  readonly requestId: string;
  /** The negotiated version; undefined where the negotiation failed or had not begun. */
  readonly version: Version | undefined;
  /** The versions that an error offers where it refuses the version of the request. */
  readonly versions: VersionRange;
};

/** An answer with the length of its body, which the log shows as well. */
export const renderText = (body: string, status: number, headers: Rendered['headers']): Rendered => ({
  status,
  headers: { ...headers, 'content-length': `${Buffer.byteLength(body)}` },
  body,
});

/** The header with the microversion of a request, and of an answer. */
export const versionHeader = 'openstack-api-version';

/** The header from before all services shared one; its value is only `1.N` or `latest`. */
const olderVersionHeader = (service: Service): string => `x-openstack-${service.type}-api-version`;

/**
 * The version of a request, by its `OpenStack-API-Version` header, or else by the older header.
 * Undefined where neither names a version of this service; where the header names several, the last one counts.
 *
 * Numbers are read as upstream's Python reads them, so that `1.+5` and `01.010` are understood. `latest` is OpenStack's
 * newest version: a client of OpenStack does not know the answers of another major version.
 *
 * @throws ApiError 400 where it is no version, 406 where it is out of range.
 */
export function requestedVersion(
  service: Service,
  header: string | null,
  olderHeader: string | null = null,
): Version | undefined {
  const usual = header === null ? undefined : usualHeaders(service).get(header);
  if (usual !== undefined) return usual;
  const text = versionNamed(service.type, header) ?? versionWithoutType(service, header, olderHeader);
  if (text === undefined) return undefined;
  if (text === 'latest') return openstackRange(service).newest;
  const [major, minor] = text.split('.', 2).length === 2 ? numbers(text) : [];
  if (major === undefined || minor === undefined) {
    throw refusedVersion(service, 400, `Invalid microversion: invalid version string: ${text}`, text);
  }
  const range = rangeOf(service, major);
  if (range !== undefined && offers(range, major, minor)) return versionOf(major, minor);
  throw refusedVersion(service, 406, `Invalid microversion: Unacceptable version header: ${text}`, text);
}

/**
 * The error for a version that is not served. Clients of OpenStack get upstream's words, without `Vary` and remedy; those that request
 * another major version get the versions that are served.
 */
function refusedVersion(service: Service, status: 400 | 406, detail: string, text: string): ApiError {
  const own = service.ranges.at(-1) ?? openstackRange(service);
  if (own === openstackRange(service) || !/^v?0*([2-9]|[1-9][0-9])/i.test(text)) {
    return new ApiError(status, detail, status === 400 ? {} : { versions: openstackRange(service) });
  }
  const served = service.ranges.map(({ oldest, newest }) => `${versionText(oldest)} to ${versionText(newest)}`);
  return new ApiError(status, detail, {
    versions: own,
    headers: { vary: versionHeader },
    sentence:
      `${detail}. Served are ${served.join(' and ')}: send "OpenStack-API-Version: ${service.type} ${versionText(own.newest)}", ` +
      'or another one of them.',
  });
}

/** The headers as nearly all clients send them, such as `placement 1.39`, with their versions. */
const usualHeaders = remembering(
  (service: Service): ReadonlyMap<string, Version> =>
    new Map(versionTexts(service).map((text) => [`${service.type} ${text}`, versionOfText(text)])),
);

/**
 * The version of the older header, which names no service. A version that is not OpenStack's needs the name of the service in the header
 * that all services share: a server of OpenStack would not understand it, and serve its oldest version.
 *
 * @throws ApiError 400 where one of the headers has such a version without the name of the service, or with another separator behind it.
 */
function versionWithoutType(service: Service, header: string | null, olderHeader: string | null): string | undefined {
  const older = bareVersion.exec(olderHeader ?? '')?.[1];
  if (header === null && older === undefined) return undefined;
  // Also with another separator than a blank: `placement=2.9`.
  const written = new RegExp(`^\\s*(${service.type}[=:/ ]\\s*)?((\\d+)\\.\\d+)\\s*$`, 'i');
  for (const text of [...(header ?? '').split(','), older ?? '']) {
    const [, name, version, major] = written.exec(text) ?? [];
    const range = major === undefined ? undefined : rangeOf(service, Number(major));
    if (range === undefined || range === openstackRange(service)) continue;
    const problem =
      name === undefined ? 'needs the name of the service' : 'needs a blank behind the name of the service';
    throw new ApiError(
      400,
      `Version ${text.trim()} ${problem}. Send "OpenStack-API-Version: ${service.type} ${version}".`,
      { versions: range, headers: { vary: versionHeader } },
    );
  }
  return older;
}

/** The accepted values of the older header; other values are ignored. Upstream ignores the header altogether. */
const bareVersion = /^\s*(\d+\.\d+|latest)\s*$/;

/** The headers with the oldest and the newest version of a range, which other services of OpenStack send as well. */
export const rangeHeaders = ({ type }: Service, { oldest, newest }: VersionRange) => ({
  'openstack-api-minimum-version': `${type} ${versionText(oldest)}`,
  'openstack-api-maximum-version': `${type} ${versionText(newest)}`,
});

/** The text of the version that the header has for a type of service: the last one of several. */
export function versionNamed(type: string, header: string | null): string | undefined {
  for (const value of (header ?? '').split(',').reverse()) {
    const match = /^(\S+)\s+(\S.*)$/.exec(value.trim());
    if (match?.[1]?.toLowerCase() === type) return match[2]?.trim();
  }
  return undefined;
}

function numbers(text: string): [number | undefined, number | undefined] {
  const dot = text.indexOf('.');
  return [integer(text.slice(0, dot)), integer(text.slice(dot + 1))];
}

const integer = (text: string): number | undefined =>
  /^\s*[+-]?\d+(_\d+)*\s*$/.test(text) ? Number(text.replaceAll('_', '')) + 0 : undefined; // -0 is 0

/**
 * Renders an error as upstream's web framework does: JSON in the API-SIG form, or HTML or plain text where the client
 * accepts nothing else. From 2.7 on it is JSON in any case: a client that asks for events reads the same errors.
 */
function renderError(error: ApiError, context: ErrorContext): Rendered {
  const title = titleOf(error.status);
  const asJson = (detail: string): Rendered =>
    render(error, 'application/json', JSON.stringify({ errors: [jsonError(error, title, detail, context)] }));
  if (formOf(context) >= since.teams) return asJson(ownSentence(error) || explanationOf(error.status));
  const body = sentence(error, context);
  switch (bestOffer(context.accept, ['text/html', 'application/json'])) {
    case 'application/json':
      return asJson(withoutTags(body));
    case 'text/html':
      return render(
        error,
        'text/html; charset=UTF-8',
        htmlError(error.status, title, sentence(error, context, escapeHtml)),
      );
    default:
      return render(error, 'text/plain; charset=UTF-8', `${error.status} ${title}\n\n${withoutTags(body)}`);
  }
}

/** The Content-Type of an error in answer to HEAD, which has no body: upstream's framework always sends this value. */
export const typeForHead = 'text/html; charset=UTF-8';

const render = (error: ApiError, contentType: string, body: string): Rendered =>
  renderText(body, error.status, { ...error.headers, 'content-type': contentType });

/** The version in whose form an error is written: of the request, or where that is not served, of the versions that are offered instead. */
const formOf = ({ version, versions }: ErrorContext): Version =>
  version ?? (majorOf(versions.newest) === majorOf(since.teams) ? versions.newest : 0);

function jsonError(error: ApiError, title: string, detail: string, context: ErrorContext) {
  return {
    status: error.status,
    title,
    detail,
    ...((context.version ?? 0) >= since.errorCodes ? { code: error.code } : {}),
    request_id: context.requestId,
    ...(error.status === 406 && context.version === undefined
      ? { max_version: versionText(context.versions.newest), min_version: versionText(context.versions.oldest) }
      : {}),
  };
}

const titleOf = (status: number): string => titles[status] ?? STATUS_CODES[status] ?? 'Error';

/** The titles of statuses that upstream's framework words differently from Node.js. */
const titles: Readonly<Record<number, string>> = { 413: 'Request Entity Too Large' };

const ownSentence = (error: ApiError): string => error.sentence ?? error.message;

/** The generic sentence of the status, and then the detail: clients match on parts of both. */
function sentence(error: ApiError, context: ErrorContext, quote = (text: string) => text): string {
  const isOwn = formOf(context) >= since.consumers;
  const detail = quote(isOwn ? ownSentence(error) : error.message);
  switch (error.status) {
    case 405:
      return `The method ${context.method} is not allowed for this resource. <br /><br />\n${detail}`;
    case 406:
      return (
        'The resource could not be generated that was acceptable to your browser\n' +
        `(content of type ${quote(context.accept)}. <br /><br />\n${detail}`
      );
    case 415:
      return (
        `The request media type ${quote(context.contentType)} is not supported by this server.\n` +
        `<br /><br />\n${detail}`
      );
    default:
      return `${explanationOf(error.status)}<br /><br />\n${detail}\n\n`;
  }
}

const explanationOf = (status: number): string => explanations[status] ?? titleOf(status);

const explanations: Readonly<Record<number, string>> = {
  400: 'The server could not comply with the request since it is either malformed or otherwise incorrect.',
  403: 'Access was denied to this resource.',
  404: 'The resource could not be found.',
  409: 'There was a conflict when trying to complete your request.',
  412: 'Request precondition failed.',
  413: 'The body of your request was too large for this server.',
  500: 'The server has either erred or is incapable of performing the requested operation.',
  503: 'The server is currently unavailable. Please try again at a later time.',
};

/** The text without tags; tags for a line break become a line feed. */
const withoutTags = (text: string): string =>
  withTags(text.replaceAll('\n', ' '), (tagged) => tagged.replaceAll(/<br.*?>/g, '\n'))
    .split('\n')
    .map((line) => withTags(line, (tagged) => tagged.replaceAll(/<!--|-->|<.*?>/g, ''), withoutComment))
    .join('\n');

/**
 * After the last `>` there is no complete tag. Without this cut, each `<` after it would be followed to the end of the
 * text, and the time would grow by the square of its length.
 */
function withTags(text: string, change: (tagged: string) => string, changeRest = (rest: string) => rest): string {
  const end = text.lastIndexOf('>') + 1;
  return change(text.slice(0, end)) + changeRest(text.slice(end));
}

const withoutComment = (text: string): string => text.replaceAll('<!--', '');

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** An error as upstream's web framework shows it to browsers. */
export const htmlError = (status: number, title: string, body: string): string =>
  `<html>\n <head>\n  <title>${status} ${title}</title>\n </head>\n` +
  ` <body>\n  <h1>${status} ${title}</h1>\n  ${body}\n </body>\n</html>`;

/** The path of an endpoint as the description of the API has it, `/limits/{project_id}`. */
export const shownPath = (path: string): string => path.replace(/:([a-z_]+)(\{[^}]*\})?/g, '{$1}');

/** The dialect of upstream's Placement. */
export const placementDialect: Dialect = {
  requestedVersion: (service, headers) =>
    requestedVersion(service, headers.get(versionHeader), headers.get(olderVersionHeader(service))),
  versionHeaders: (service, version, vary) => ({
    [versionHeader]: `${service.type} ${versionText(version)}`,
    ...(vary ? { vary: versionHeader } : {}),
  }),
  checkContentType: (contentType, contentLength) => {
    if (contentLength === 0 || contentType !== '') return;
    throw new ApiError(400, 'content-type header required when content-length > 0', { vary: false });
  },
  // Upstream has none of the paths of another major version. Its text for a path of its own is empty, and its versions keep that.
  tooEarly: ({ method, path, since: first }, service, version) =>
    majorOf(first) === majorOf(openstackRange(service).newest)
      ? ''
      : `${method} ${shownPath(path)} needs microversion ${versionText(first)}; this request is for ${versionText(version)}.`,
  malformedBody: (why) => `Malformed JSON: ${why}`,
  invalidBody: (issues, schema) => invalidValue(issues, schema),
  forbidden: (rule) => `Policy does not allow ${rule} to be performed.`,
  renderError,
};
