/** The validators of openapi.yaml for one request line at one microversion. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type Version, versionText } from '../../src/placement/versions.ts';
import { atVersion, document, exists, isObject, type Json, type JsonObject, objectAt, referenced } from './document.ts';

/** The parts of the document about a method and a path at a version. */
export type Contract = Readonly<{
  /** The operation at that version. Undefined if the document has none. */
  operation: JsonObject | undefined;
  /** The operation's parameters and those of its path. */
  parameters: readonly JsonObject[];
  /** Values of the path parameters, decoded. */
  pathValues: Readonly<Record<string, string>>;
  /** Responses by status. */
  responses: JsonObject;
}>;

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

const ajv = new Ajv2020({
  allErrors: true,
  strict: true,
  // Alternatives have only the keys that differ.
  strictTypes: false,
  strictRequired: false,
  allowUnionTypes: true,
});
ajv.addVocabulary(['x-openstack', 'example']);

const complaintsBySchema = new Map<string, (value: unknown) => readonly string[]>();

/** A validator returns the problems of a value, or nothing if the value is valid. Equal schemas share one validator. */
export function validator(schema: Json): (value: unknown) => readonly string[] {
  const key = JSON.stringify(schema);
  const known = complaintsBySchema.get(key);
  if (known !== undefined) return known;
  const validate = ajv.compile(isObject(schema) ? schema : {});
  const complain = (value: unknown): readonly string[] => {
    if (validate(value)) return [];
    return (validate.errors ?? []).map((error) => {
      const { additionalProperty, unevaluatedProperty = additionalProperty } = error.params;
      const extra = unevaluatedProperty === undefined ? '' : ` (${String(unevaluatedProperty)})`;
      return `${error.instancePath || 'it'} ${error.message ?? error.keyword}${extra}`;
    });
  };
  complaintsBySchema.set(key, complain);
  return complain;
}

/** Every operation of the document, at any version. */
export function operations(
  root: JsonObject = document,
): readonly Readonly<{ method: string; path: string; operation: JsonObject }>[] {
  return Object.entries(objectAt(root, 'paths')).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = isObject(item) ? item[method] : undefined;
      return isObject(operation) ? [{ method: method.toUpperCase(), path, operation }] : [];
    }),
  );
}

/** The path template that matches a decoded path, and the values of its parameters. */
function matchPath(path: string, root: JsonObject): { template: string; values: Record<string, string> } | undefined {
  const parts = (path === '' ? '/' : path).split('/');
  for (const template of Object.keys(objectAt(root, 'paths'))) {
    const names = template.split('/');
    const values: Record<string, string> = {};
    const fits =
      names.length === parts.length &&
      names.every((name, index) => {
        const part = parts[index] ?? '';
        if (!name.startsWith('{')) return name === part;
        values[name.slice(1, -1)] = part;
        return part !== '';
      });
    if (fits) return { template, values };
  }
  return undefined;
}

/**
 * The answers to requests that the document does not list, as its introduction says, unless another check comes first.
 */
function elsewhere(refusal: Readonly<Record<string, string>>, version: Version, root: JsonObject): JsonObject {
  const named = {
    '400': 'BadRequest',
    '401': 'Unauthorized',
    '406': 'NotAcceptable',
    '413': 'TooLarge',
    '415': 'Error',
  };
  const responses = Object.entries({ ...named, ...refusal }).map(([status, name]) => [
    status,
    atVersion(referenced(`#/components/responses/${name}`, root), version, root) ?? {},
  ]);
  return Object.fromEntries(responses);
}

/** The answers to load balancers that ask `/` by a method which the document does not list, as its introduction says. */
const answersOfRoot = (item: JsonObject, root: JsonObject): Readonly<Record<string, JsonObject>> => ({
  HEAD: objectAt(objectAt(objectAt(item, 'get'), 'responses'), '200'),
  OPTIONS: {
    headers: Object.fromEntries(
      [
        ['Allow', 'Allow'],
        ['X-OpenStack-Request-Id', 'RequestId'],
      ].map(([header, name]) => [header, referenced(`#/components/headers/${name}`, root)]),
    ),
  },
});

/**
 * The part of the document about a request line.
 *
 * @param path decoded, without query
 * @param version such as 1039 for 1.39
 */
export function contractFor(method: string, path: string, version: Version, root: JsonObject = document): Contract {
  const outside = (refusal: Readonly<Record<string, string>>): Contract => ({
    operation: undefined,
    parameters: [],
    pathValues: {},
    responses: elsewhere(refusal, version, root),
  });
  const match = matchPath(path, root);
  if (match === undefined) return outside({ '404': 'Error' });
  const item = objectAt(objectAt(root, 'paths'), match.template);
  const written = METHODS.includes(method.toLowerCase()) ? item[method.toLowerCase()] : undefined;
  if (!isObject(written)) {
    const refused = outside({ '405': 'MethodNotAllowed' });
    const answered = match.template === '/' ? answersOfRoot(item, root)[method] : undefined;
    return answered === undefined ? refused : { ...refused, responses: { ...refused.responses, '200': answered } };
  }
  if (!exists(written, version)) {
    const below = objectAt(written, 'x-openstack').below;
    // Without Allow, because that header would have to name the method.
    return outside({ [typeof below === 'string' ? below : '404']: 'Error' });
  }
  const operation = atVersion(written, version, root);
  if (!isObject(operation)) throw new Error(`${method} ${match.template} cannot be read at ${versionText(version)}.`);
  const parameters = [item.parameters, written.parameters].flatMap((list) => {
    const read = atVersion(list ?? [], version, root);
    return Array.isArray(read) ? read.filter(isObject) : [];
  });
  return { operation, parameters, pathValues: match.values, responses: objectAt(operation, 'responses') };
}
