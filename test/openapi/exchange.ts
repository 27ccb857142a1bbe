/** Holds one request and its answer against openapi.yaml. */
import { type Contract, contractFor, validator } from './contract.ts';
import { document, isObject, type JsonObject, NEWEST_MINOR, objectAt, stringsAt } from './document.ts';
import { requestComplaints } from './request.ts';

/** A request and its answer as they went over the wire. Header names in any case; a repeated header joined by commas. */
export type Exchange = Readonly<{
  method: string;
  /** As sent, percent-encoded; may carry the query after `?`. */
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

/** Headers under their names in lower case. */
function lowerCased(headers: Headers): ReadonlyMap<string, string> {
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/**
 * The minor version that a request asks for: undefined where it is not one of 1.0 to the newest that the server speaks, 'unsure' where the header
 * is of a form that only the service itself should judge.
 */
function askedMinor(newest: number, header: string | undefined, older?: string): number | undefined | 'unsure' {
  if (header === undefined && older !== undefined) return askedMinor(newest, `placement ${older}`);
  if (header === undefined) return 0;
  if (/^placement latest$/.test(header)) return newest;
  const found = /^placement (0|[1-9]\d*)\.(0|[1-9]\d*)$/.exec(header);
  if (found === null) return 'unsure';
  return found[1] === '1' && Number(found[2]) <= newest ? Number(found[2]) : undefined;
}

/** Whether a request is no HTTP, so that it was refused before anybody read its headers. */
const isUnreadable = (headers: ReadonlyMap<string, string>): boolean =>
  !/^\d*$/.test(headers.get('content-length') ?? '');

/** The minor version that an answer says it was made at. */
function shownMinor(header: string | undefined): number | undefined {
  const found = header === undefined ? null : /^placement 1\.(\d+)$/.exec(header);
  return found === null ? undefined : Number(found[1]);
}

/** Every header that some response of the document has: where a response does not list it, it must be absent. */
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

/** The part of an error body that a schema cannot say: it agrees with the rest of the answer and with the operation. */
function errorComplaints(body: unknown, contract: Contract, status: number, understood: boolean, requestId?: string) {
  const errors = isObject(body) ? body.errors : undefined;
  const error = Array.isArray(errors) ? errors[0] : undefined;
  if (!isObject(error)) return [];
  const complaints: string[] = [];
  if (error.status !== status) complaints.push(`the status in the body is ${String(error.status)}`);
  if (error.request_id !== requestId) complaints.push('the request_id in the body is not that of the header');
  if (status === 406 && 'min_version' in error === understood) {
    complaints.push(understood ? 'min_version is for versions not spoken only' : 'min_version is missing');
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

/** Whether it is a question of a browser that [cors] answered, ahead of the API. */
function isPreflight(exchange: Exchange, headers: ReadonlyMap<string, string>): boolean {
  const isFromPage = headers.has('origin') || headers.has('access-control-request-method');
  return exchange.method === 'OPTIONS' && exchange.status === 200 && isFromPage;
}

function decoded(path: string): string {
  try {
    // A line feed at the very end is dropped by the service.
    return decodeURIComponent(path).replace(/\n$/, '');
  } catch {
    return path;
  }
}

/**
 * Everything in which an exchange is not as openapi.yaml says, as sentences; nothing, if all is well. The answer must be
 * listed for its status and fit, at the microversion of the request. A success means that the request must have fitted too.
 */
export function checkExchange(exchange: Exchange): readonly string[] {
  const requestHeaders = lowerCased(exchange.requestHeaders);
  if (isPreflight(exchange, requestHeaders)) return [];
  const responseHeaders = lowerCased(exchange.responseHeaders);
  const [path = '', query = ''] =
    exchange.query === undefined ? exchange.path.split(/\?(.*)/s) : [exchange.path, exchange.query];
  const newest = shownMinor(responseHeaders.get('openstack-api-maximum-version')) ?? NEWEST_MINOR;
  const asked = isUnreadable(requestHeaders)
    ? 'unsure'
    : askedMinor(newest, requestHeaders.get(VERSION_HEADER), requestHeaders.get(OLDER_VERSION_HEADER));
  const shown = shownMinor(responseHeaders.get(VERSION_HEADER));
  const minor = asked === 'unsure' ? shown : asked;
  const contract = contractFor(exchange.method, decoded(path), minor ?? 0);

  const complaints: string[] = [];
  if (typeof asked === 'number' && shown !== undefined && shown !== asked) complaints.push(`it was made at 1.${shown}`);
  if (typeof asked === 'number' && shown === undefined && [400, 406].includes(exchange.status)) {
    complaints.push(`the header ${VERSION_HEADER} is missing`);
  }
  if (asked === undefined && ![401, 406].includes(exchange.status))
    complaints.push('the version asked for is not spoken');

  const response = contract.responses[String(exchange.status)];
  if (!isObject(response)) {
    complaints.push(`this status is not one of ${Object.keys(contract.responses).join(', ')}`);
  } else {
    const further = (body: unknown): readonly string[] =>
      errorComplaints(
        body,
        contract,
        exchange.status,
        minor !== undefined,
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
  const at = minor === undefined ? requestHeaders.get(VERSION_HEADER) : `1.${minor}`;
  return complaints.map(
    (what) => `${exchange.method} ${exchange.path} at ${at}, answered ${exchange.status}: ${what}.`,
  );
}
