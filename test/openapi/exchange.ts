/** Checks one request and its answer against openapi.yaml. */
import { placementService } from '../../src/placement/microversions.ts';
import {
  majorOf,
  openstackRange,
  type Version,
  versionOf,
  versionOfText,
  versionText,
} from '../../src/placement/versions.ts';
import { type Contract, contractFor, validator } from './contract.ts';
import { document, isObject, type JsonObject, objectAt, stringsAt } from './document.ts';
import { requestComplaints } from './request.ts';

/**
 * A request and its answer as they were sent. Header names are in any case. Headers with the same name are joined by
 * commas.
 */
export type Exchange = Readonly<{
  method: string;
  /** As sent, percent-encoded. May contain the query after `?`. */
  path: string;
  /** As sent, without `?`. */
  query?: string;
  requestHeaders: Headers;
  requestBody?: string;
  status: number;
  responseHeaders: Headers;
  responseBody?: string;
}>;

export type Headers = Readonly<Record<string, string>>;

const VERSION_HEADER = 'openstack-api-version';
const OLDER_VERSION_HEADER = 'x-openstack-placement-api-version';

/** The headers, by names in lower case. */
function lowerCased(headers: Headers): ReadonlyMap<string, string> {
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/**
 * The version that a request asks for. Undefined if the server does not offer it. 'unsure' if only the service itself
 * should judge this form of the header.
 *
 * @param newest the newest version that the answer offers
 */
function requestedVersion(newest: Version, header: string | undefined, older?: string): Version | undefined | 'unsure' {
  if (header === undefined && older !== undefined) {
    // Version 2 needs the name of the service.
    return older.startsWith('2.') ? 'unsure' : requestedVersion(newest, `placement ${older}`);
  }
  if (header === undefined) return versionOf(1, 0);
  if (/^placement latest$/.test(header)) return newest;
  const found = /^placement (0|[1-9]\d*)\.(0|[1-9]\d*)$/.exec(header);
  if (found === null) return 'unsure';
  const version = versionOf(Number(found[1]), Number(found[2]));
  return majorOf(version) === majorOf(newest) && Number(found[2]) < 1000 && version <= newest ? version : undefined;
}

/** Whether a request is not valid HTTP, so that it was refused before its headers were read. */
const isUnreadable = (headers: ReadonlyMap<string, string>): boolean =>
  !/^\d*$/.test(headers.get('content-length') ?? '');

/** The version in the header of an answer. */
function shownVersion(header: string | undefined): Version | undefined {
  const found = header === undefined ? null : /^placement ([12]\.\d+)$/.exec(header);
  return found?.[1] === undefined ? undefined : versionOfText(found[1]);
}

/**
 * Every header that some response of the document has. If a response does not list a header of these, the header must
 * be absent.
 */
const listedHeaders: ReadonlySet<string> = (() => {
  const names = new Set<string>();
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(walk);
    if (!isObject(node)) return;
    if (isObject(node.headers) && 'description' in node) {
      for (const name of Object.keys(node.headers)) names.add(name.toLowerCase());
    }
    Object.values(node).forEach(walk);
  };
  walk(document);
  return names;
})();

function headerComplaints(response: JsonObject, sent: ReadonlyMap<string, string>): readonly string[] {
  const listed = new Map(Object.entries(objectAt(response, 'headers')).map(([name, it]) => [name.toLowerCase(), it]));
  const surplus = [...sent.keys()].filter((name) => listedHeaders.has(name) && !listed.has(name));
  const wrong = [...listed].flatMap(([name, header]) => {
    const value = sent.get(name);
    if (!isObject(header)) return [];
    if (value === undefined) return header.required === true ? [`the header ${name} is missing`] : [];
    return validator(header.schema ?? {})(value).map((what) => `the header ${name} (${value}): ${what}`);
  });
  return [...surplus.map((name) => `the header ${name} does not belong there`), ...wrong];
}

/**
 * The checks of an error body that a schema cannot express: it must agree with the rest of the answer and with the
 * operation.
 */
function errorComplaints(body: unknown, contract: Contract, status: number, understood: boolean, requestId?: string) {
  const errors = isObject(body) ? body.errors : undefined;
  const error = Array.isArray(errors) ? errors[0] : undefined;
  if (!isObject(error)) return [];
  const complaints: string[] = [];
  if (error.status !== status) complaints.push(`the status in the body is ${String(error.status)}`);
  if (error.request_id !== requestId) complaints.push('the request_id in the body is not that of the header');
  if (status === 406 && 'min_version' in error === understood) {
    complaints.push(understood ? 'min_version is only for versions that are not served' : 'min_version is missing');
  }
  const codes = objectAt(objectAt(contract.operation ?? {}, 'x-openstack'), 'error-codes');
  const expected = String(status) in codes ? stringsAt(codes, String(status)) : ['placement.undefined_code'];
  if (typeof error.code === 'string' && !expected.includes(error.code)) {
    complaints.push(`the code ${error.code} is not one of ${expected.join(', ')}`);
  }
  return complaints;
}

function bodyComplaints(
  response: JsonObject,
  exchange: Exchange,
  contentType: string | undefined,
  furtherComplaints: (body: unknown) => readonly string[],
): readonly string[] {
  if (exchange.method === 'HEAD') return exchange.responseBody ? ['an answer to HEAD has a body'] : [];
  const content = objectAt(response, 'content');
  const body = exchange.responseBody ?? '';
  if (Object.keys(content).length === 0) {
    return [
      ...(body === '' ? [] : ['there is a body, and should be none']),
      ...(contentType === undefined ? [] : [`there is a Content-Type (${contentType}) without a body`]),
    ];
  }
  const mediaType = contentType?.split(';')[0]?.trim() ?? '';
  if (!(mediaType in content)) return [`the Content-Type is ${contentType ?? 'missing'}`];
  if (mediaType !== 'application/json') return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return ['the body is not JSON'];
  }
  const complaints = validator(objectAt(content, mediaType).schema ?? {})(parsed);
  return [...complaints.map((what) => `the body: ${what}`), ...furtherComplaints(parsed)];
}

/** Whether the request is a preflight of a browser that [cors] answered before the API. */
function isPreflight(exchange: Exchange, headers: ReadonlyMap<string, string>): boolean {
  const isFromPage = headers.has('origin') || headers.has('access-control-request-method');
  return exchange.method === 'OPTIONS' && exchange.status === 200 && isFromPage;
}

function decoded(path: string): string {
  try {
    // The service ignores a line feed at the very end.
    return decodeURIComponent(path).replace(/\n$/, '');
  } catch {
    return path;
  }
}

/**
 * All differences between an exchange and openapi.yaml, as sentences. Empty if there are none. The answer must be
 * listed for its status, and be valid at the microversion of the request. If it is a success, the request must have
 * been valid, too.
 */
export function checkExchange(exchange: Exchange): readonly string[] {
  const requestHeaders = lowerCased(exchange.requestHeaders);
  if (isPreflight(exchange, requestHeaders)) return [];
  const responseHeaders = lowerCased(exchange.responseHeaders);
  const [path = '', query = ''] =
    exchange.query === undefined ? exchange.path.split(/\?(.*)/s) : [exchange.path, exchange.query];
  const newest =
    shownVersion(responseHeaders.get('openstack-api-maximum-version')) ?? openstackRange(placementService).newest;
  const requested = isUnreadable(requestHeaders)
    ? 'unsure'
    : requestedVersion(newest, requestHeaders.get(VERSION_HEADER), requestHeaders.get(OLDER_VERSION_HEADER));
  const shown = shownVersion(responseHeaders.get(VERSION_HEADER));
  const version = requested === 'unsure' ? shown : requested;
  const contract = contractFor(exchange.method, decoded(path), version ?? versionOf(1, 0));

  const complaints: string[] = [];
  if (typeof requested === 'number' && shown !== undefined && shown !== requested)
    complaints.push(`it was made at ${versionText(shown)}`);
  if (typeof requested === 'number' && shown === undefined && [400, 406].includes(exchange.status)) {
    complaints.push(`the header ${VERSION_HEADER} is missing`);
  }
  if (requested === undefined && ![401, 406].includes(exchange.status))
    complaints.push('the requested version is not served');

  const response = contract.responses[String(exchange.status)];
  if (!isObject(response)) {
    complaints.push(`this status is not one of ${Object.keys(contract.responses).join(', ')}`);
  } else {
    const further = (body: unknown): readonly string[] =>
      errorComplaints(
        body,
        contract,
        exchange.status,
        version !== undefined,
        responseHeaders.get('x-openstack-request-id'),
      );
    complaints.push(
      ...headerComplaints(response, responseHeaders),
      ...bodyComplaints(response, exchange, responseHeaders.get('content-type'), further),
    );
  }
  if (exchange.status < 300 && contract.operation !== undefined) {
    const request = { query, headers: requestHeaders, body: exchange.requestBody ?? '' };
    complaints.push(...requestComplaints(contract, contract.operation, request));
  }
  const at = version === undefined ? requestHeaders.get(VERSION_HEADER) : versionText(version);
  return complaints.map(
    (what) => `${exchange.method} ${exchange.path} at ${at}, answered ${exchange.status}: ${what}.`,
  );
}
