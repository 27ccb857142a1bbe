/** Checks a request that succeeded against openapi.yaml: if it is not valid, it should have been refused. */
import { type Contract, validator } from './contract.ts';
import { document, isObject, type JsonObject, objectAt } from './document.ts';

export type SentRequest = Readonly<{
  /** As sent, without `?`. */
  query: string;
  /** By name in lower case. */
  headers: ReadonlyMap<string, string>;
  /** Empty if there was no body. */
  body: string;
}>;

/** Whether a query parameter of the document matches a name. */
export function standsFor(parameter: JsonObject, name: string): boolean {
  const pattern = objectAt(parameter, 'x-openstack')['name-pattern'];
  return typeof pattern === 'string' ? new RegExp(pattern).test(name) : parameter.name === name;
}

/** A schema without alternatives, if the version leaves only one of them. */
function single(schema: JsonObject): JsonObject {
  const alternatives = schema.oneOf;
  const [only, ...others] = Array.isArray(alternatives) ? alternatives : [];
  return isObject(only) && others.length === 0 ? { ...schema, ...only } : schema;
}

/**
 * The value of a parameter in a query: all its values for an array, else the last one, as a number if the schema asks
 * for one.
 */
function meant(schema: JsonObject, values: readonly string[]): unknown {
  if (schema.type === 'array') return values;
  const last = values.at(-1) ?? '';
  if (schema.type !== 'integer' || !/^(?:0|[1-9][0-9]*)$/.test(last)) return last;
  // Larger numbers than this are not integers.
  return Math.min(Number(last), Number.MAX_VALUE);
}

function queryComplaints(parameters: readonly JsonObject[], query: string): readonly string[] {
  const listed = parameters.filter((parameter) => parameter.in === 'query');
  if (listed.length === 0) return [];
  const given = new URLSearchParams(query);
  const missing = listed
    .filter((parameter) => parameter.required === true && !given.has(String(parameter.name)))
    .map((parameter) => `the query parameter ${String(parameter.name)} is missing`);
  const wrong = [...new Set(given.keys())].flatMap((name) => {
    const parameter = listed.find((candidate) => standsFor(candidate, name));
    if (parameter === undefined) return [`there is no query parameter ${name} at this version`];
    const schema = single(objectAt(parameter, 'schema'));
    const value = meant(schema, given.getAll(name));
    return validator(schema)(value).map((what) => `the query parameter ${name} (${JSON.stringify(value)}): ${what}`);
  });
  return [...missing, ...wrong];
}

function bodyComplaints(operation: JsonObject, request: SentRequest): readonly string[] {
  const expected = operation.requestBody;
  // An operation without a body ignores any body.
  if (!isObject(expected)) return [];
  const content = objectAt(expected, 'content');
  const mediaType = request.headers.get('content-type')?.split(';')[0] ?? '';
  if (!(mediaType in content)) return [`the request's Content-Type is ${mediaType || 'missing'}`];
  let parsed: unknown;
  try {
    parsed = JSON.parse(request.body);
  } catch {
    return ["the request's body is not JSON"];
  }
  const complaints = validator(objectAt(content, mediaType).schema ?? {})(parsed);
  return complaints.map((what) => `the request's body: ${what}`);
}

/** The problems of a request, as sentences. Empty if it may succeed. */
export function requestComplaints(contract: Contract, operation: JsonObject, request: SentRequest): readonly string[] {
  const security = operation.security ?? document.security;
  const tokenNeeded = Array.isArray(security) && security.length > 0;
  const token = tokenNeeded && !request.headers.has('x-auth-token') ? ['there is no X-Auth-Token'] : [];
  const path = contract.parameters
    .filter((parameter) => parameter.in === 'path')
    .flatMap((parameter) => {
      const name = String(parameter.name);
      const what = validator(parameter.schema ?? {})(contract.pathValues[name]);
      return what.map((text) => `${name} in the path (${contract.pathValues[name]}): ${text}`);
    });
  return [
    ...token,
    ...path,
    ...queryComplaints(contract.parameters, request.query),
    ...bodyComplaints(operation, request),
  ];
}
