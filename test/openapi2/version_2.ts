/**
 * openapi-2.yaml: what openapi.yaml says of the newest version 2, in a form that generators of clients understand. There are no versions in
 * it, no alternatives of objects, and no keys by pattern.
 */
import { placementService } from '../../src/placement/microversions.ts';
import { newestOf, versionText } from '../../src/placement/versions.ts';
import {
  document,
  exists,
  isObject,
  type Json,
  type JsonObject,
  objectAt,
  referenced,
  stringsAt,
} from '../openapi/document.ts';
import type { Example } from './story.ts';

export const version = newestOf(placementService);

const header = `placement ${versionText(version)}`;

const methods = ['get', 'put', 'post', 'delete'];

/** The document, with an example for each body. @param examples by operationId */
export function versionTwo(examples: ReadonlyMap<string, Example>): JsonObject {
  const paths: Record<string, Json> = {};
  for (const [path, item] of Object.entries(objectAt(document, 'paths'))) {
    if (!isObject(item) || path === '/') continue;
    const operations = methods.flatMap((method) => {
      const operation = item[method];
      if (!isObject(operation) || !exists(operation, version)) return [];
      return [[method, operationOf(operation, item, examples.get(String(operation.operationId)))] as const];
    });
    if (operations.length > 0) paths[path] = Object.fromEntries(operations);
  }
  return {
    openapi: '3.1.0',
    info: {
      ...objectAt(document, 'info'),
      version: versionText(version),
      description:
        `The API at ${header}: made of openapi.yaml, which describes all versions and says more of each field. Send the header ` +
        `\`OpenStack-API-Version: ${header}\` with every request. Parameters of numbered and named groups (\`resources1\`, ` +
        '`required_GPU`) are the keys of the parameter `groups`. Where a field may have several forms, one of them is here: `candidates` is a ' +
        'list, and a single query may also stand there as a text.',
    },
    servers: [{ url: 'http://127.0.0.1:8778' }],
    security: document.security ?? [],
    tags: document.tags ?? [],
    paths,
    components: usedComponents(paths),
  };
}

function operationOf(operation: JsonObject, item: JsonObject, example: Example | undefined): JsonObject {
  const { 'x-openstack': about, parameters: own, responses, requestBody, ...rest } = operation;
  const parameters = [...listAt(item, 'parameters'), ...(Array.isArray(own) ? own : [])];
  const codes = isObject(about) ? about['error-codes'] : undefined;
  return {
    ...(plain(rest) as JsonObject), // an operation that exists is an object
    ...(codes === undefined ? {} : { 'x-error-codes': codes }),
    parameters: parametersOf(parameters),
    ...(isObject(requestBody) && exists(requestBody, version)
      ? { requestBody: bodyOf(requestBody, example?.request) }
      : {}),
    responses: Object.fromEntries(
      Object.entries(isObject(responses) ? responses : {}).flatMap(([status, response]) => {
        const shown = responseOf(response, status === String(example?.status) ? example?.response : undefined);
        return shown === undefined ? [] : [[status, shown]];
      }),
    ),
  };
}

const listAt = (part: JsonObject, key: string): readonly Json[] => {
  const list = part[key];
  return Array.isArray(list) ? list : [];
};

/** Parameters without those that stand for many names, which are keys of `groups`. */
function parametersOf(parameters: readonly Json[]): readonly Json[] {
  const shown = parameters.flatMap((parameter) => {
    const target = isObject(parameter) && typeof parameter.$ref === 'string' ? referenced(parameter.$ref) : parameter;
    if (!isObject(target) || target.name === 'X-OpenStack-Placement-API-Version') return [];
    if (target.name === 'OpenStack-API-Version') return [versionParameter];
    if (objectAt(target, 'x-openstack')['name-pattern'] !== undefined) return [];
    const made = plain(parameter);
    return made === undefined ? [] : [made];
  });
  const standForMany = parameters.some(
    (parameter) => isObject(parameter) && objectAt(parameter, 'x-openstack')['name-pattern'] !== undefined,
  );
  return standForMany ? [...shown, groups] : shown;
}

const versionParameter: JsonObject = {
  name: 'OpenStack-API-Version',
  in: 'header',
  required: true,
  description: 'The version that this document describes.',
  schema: { type: 'string', enum: [header] },
};

const groups: JsonObject = {
  name: 'groups',
  in: 'query',
  style: 'form',
  explode: true,
  description:
    'Further groups of the request, each of which one provider serves: `resources1`, `required1`, `member_of1` and `in_tree1` are those of ' +
    'group 1; a suffix has letters, digits, `-` and `_`.',
  schema: { type: 'object', additionalProperties: { type: 'string' } },
  example: { resources1: 'PGPU:1', resources2: 'PGPU:1' },
};

const withExample = (content: JsonObject, example: Json | undefined): JsonObject => {
  const json = objectAt(content, 'application/json');
  return {
    'application/json': { schema: plain(json.schema ?? {}) ?? {}, ...(example === undefined ? {} : { example }) },
  };
};

const bodyOf = (body: JsonObject, example: Json | undefined): JsonObject => ({
  ...(body.required === true ? { required: true } : {}),
  content: withExample(objectAt(body, 'content'), example),
});

function responseOf(response: Json, example: Json | undefined): Json | undefined {
  if (!isObject(response) || !exists(response, version)) return undefined;
  if (typeof response.$ref === 'string' && example === undefined) return plain(response);
  const target = typeof response.$ref === 'string' ? referenced(response.$ref) : response;
  const described = { ...target, ...response };
  const { $ref: _, content, 'x-openstack': __, ...rest } = described;
  const hasJson = isObject(content) && 'application/json' in content;
  const streams =
    isObject(content) && 'text/event-stream' in content ? objectAt(content, 'text/event-stream') : undefined;
  return {
    ...(plain(rest) as JsonObject), // a response is an object
    ...(hasJson
      ? {
          content: {
            ...withExample(content, example),
            ...(streams === undefined ? {} : { 'text/event-stream': plain(streams) ?? {} }),
          },
        }
      : {}),
  };
}

/** From 2.7 on all errors are JSON. */
const ofOlderErrors: readonly string[] = ['text/html', 'text/plain'];

/** A part at this version; undefined where it does not exist there. */
function plain(part: Json): Json | undefined {
  if (Array.isArray(part)) return part.map((entry) => plain(entry)).filter((entry) => entry !== undefined);
  if (!isObject(part)) return part;
  if (!exists(part, version)) return undefined;
  if (typeof part.$ref === 'string') {
    if (!exists(referenced(part.$ref), version)) return undefined;
    const { 'x-openstack': _, unevaluatedProperties: __, ...kept } = part;
    return kept;
  }
  const made: Record<string, Json> = {};
  for (const [key, value] of Object.entries(part)) {
    if (key === 'x-openstack' || ofOlderErrors.includes(key)) continue;
    const shown = key === 'properties' ? propertiesOf(value) : plain(value);
    if (shown !== undefined) made[key] = shown;
  }
  return isSchema(made) ? simple(made) : made;
}

/** The properties of a schema. A property may be called like a keyword of JSON Schema, `required` for example. */
const propertiesOf = (value: Json): Json =>
  isObject(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([name, schema]) => {
          const shown = plain(schema);
          return shown === undefined ? [] : [[name, shown]];
        }),
      )
    : value;

const schemaKeys = ['type', 'oneOf', 'anyOf', 'allOf', 'properties', 'patternProperties', 'enum', 'const', 'required'];
const isSchema = (part: JsonObject): boolean =>
  schemaKeys.some((key) => key in part) && !('in' in part && 'name' in part);

/** A schema without alternatives of objects, sums, and keys by pattern. */
function simple(schema: JsonObject): JsonObject {
  const { oneOf, anyOf, allOf, patternProperties, unevaluatedProperties, contains: _, ...rest } = schema;
  let made: JsonObject = rest;
  for (const part of (Array.isArray(allOf) ? allOf : []).filter(isObject)) {
    if (!('contains' in part)) made = both(made, resolved(part));
  }
  const alternatives = [oneOf, anyOf].flatMap((list) => (Array.isArray(list) ? list : [])).filter(isObject);
  if (alternatives.length > 0) {
    const { items: __, examples: ___, ...outer } = made; // those of the other forms
    const union = unionOf(alternatives);
    made = both('items' in union ? outer : made, union);
  }
  if (unevaluatedProperties === false && !('additionalProperties' in made))
    made = { ...made, additionalProperties: false };
  if (isObject(patternProperties)) {
    // Keys of no pattern may come where nothing says that they may not.
    const isOpen = 'properties' in made || (made.additionalProperties !== false && unevaluatedProperties !== false);
    made = { ...made, ...byPattern(patternProperties, isOpen) };
  }
  const properties = objectAt(made, 'properties');
  if (Array.isArray(made.required)) {
    made = { ...made, required: stringsAt(made, 'required').filter((name) => name in properties) };
  }
  return made;
}

/** The same for keys of any name, since generators do not know `patternProperties`. @param hasOthers whether some keys do not match the pattern */
function byPattern(patternProperties: JsonObject, hasOthers: boolean): JsonObject {
  const [[pattern, schema] = ['', {}]] = Object.entries(patternProperties);
  return { ...(hasOthers ? {} : { propertyNames: { pattern } }), additionalProperties: schema };
}

/** A schema, or the target of its reference, with its own alternatives resolved. */
function resolved(schema: JsonObject): JsonObject {
  if (typeof schema.$ref !== 'string') return schema;
  const { $ref, ...beside } = schema;
  const target = plain(referenced($ref));
  return isObject(target) ? { ...resolved(target), ...beside } : beside;
}

/** What meets both schemas, of which one mostly says nothing of what the other says. */
function both(one: JsonObject, other: JsonObject): JsonObject {
  const properties = { ...objectAt(one, 'properties'), ...objectAt(other, 'properties') };
  const required = [...new Set([...stringsAt(one, 'required'), ...stringsAt(other, 'required')])];
  return {
    ...one,
    ...other,
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  };
}

/** One schema that all alternatives meet: an object with the properties of all, of which those are required that all require. */
function unionOf(alternatives: readonly JsonObject[]): JsonObject {
  const [only] = alternatives;
  if (only !== undefined && alternatives.length === 1) return resolved(only);
  const parts = alternatives.map(resolved);
  const types = new Set(parts.flatMap(typesOf));
  if (types.has('object') && !types.has('string')) return unionOfObjects(parts);
  const array = parts.find((part) => typesOf(part).includes('array'));
  // One form is enough for a client: a list may have one member.
  if (array !== undefined) return array;
  const [first = {}] = parts.filter((part) => !typesOf(part).includes('null'));
  const patterns = parts.map(patternOf).filter((pattern) => pattern !== undefined);
  const strings = parts.filter((part) => typesOf(part).includes('string')).length;
  const { pattern: _, const: __, enum: ___, ...rest } = first;
  const [single, ...more] = patterns;
  const pattern = more.length === 0 ? single : patterns.map((each) => `(?:${each})`).join('|');
  const kept = pattern === undefined || patterns.length < strings ? rest : { ...rest, pattern };
  return { ...kept, type: types.size === 1 ? [...types].join() : [...types] };
}

/** The pattern of the texts of a schema; undefined where they may be any. */
function patternOf({ pattern, const: only, enum: some }: JsonObject): string | undefined {
  if (typeof pattern === 'string') return pattern;
  const texts = [...(Array.isArray(some) ? some : []), only].filter((text) => typeof text === 'string');
  return texts.length === 0 ? undefined : `^(?:${texts.map((text) => text.replaceAll(/\W/g, '\\$&')).join('|')})$`;
}

function unionOfObjects(parts: readonly JsonObject[]): JsonObject {
  const properties: Record<string, Json> = {};
  for (const part of parts) {
    for (const [name, schema] of Object.entries(objectAt(part, 'properties'))) {
      const known = properties[name];
      const isSame = known === undefined || JSON.stringify(known) === JSON.stringify(schema);
      properties[name] = isSame || !isObject(known) || !isObject(schema) ? schema : widest(known, schema);
    }
  }
  const [first = {}, ...others] = parts;
  const required = stringsAt(first, 'required').filter((name) =>
    others.every((part) => stringsAt(part, 'required').includes(name)),
  );
  const keys = parts.find((part) => 'propertyNames' in part);
  return {
    type: 'object',
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
    ...(keys === undefined
      ? { additionalProperties: false }
      : { propertyNames: keys.propertyNames ?? {}, additionalProperties: keys.additionalProperties ?? {} }),
  };
}

/** Of two schemas of one property the one that says less: an empty object is a case of the other form. */
function widest(one: JsonObject, other: JsonObject): JsonObject {
  const [first, second] = [resolved(one), resolved(other)];
  if (first.maxProperties === 0) return maybeEmpty(second);
  if (second.maxProperties === 0) return maybeEmpty(first);
  const types = [...new Set([...typesOf(first), ...typesOf(second)])];
  if (types.length === 1 && types[0] === 'object') return unionOfObjects([first, second]);
  if (types.length === 1 && types[0] === 'array' && isObject(first.items) && isObject(second.items)) {
    return { type: 'array', items: widest(first.items, second.items) };
  }
  return { type: types.length === 1 ? (types[0] ?? 'string') : types };
}

const maybeEmpty = ({ minProperties: _, ...schema }: JsonObject): JsonObject => schema;

function typesOf(part: JsonObject): readonly string[] {
  const { type } = part;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type.filter((each) => typeof each === 'string');
  if ('const' in part) return [part.const === null ? 'null' : typeof part.const];
  if ('enum' in part && Array.isArray(part.enum)) return [...new Set(part.enum.map((each) => typeof each))];
  return 'properties' in part || 'patternProperties' in part ? ['object'] : [];
}

/** The components that are referred to, by what is referred to as well. */
function usedComponents(paths: JsonObject): JsonObject {
  const used: Record<string, Record<string, Json>> = {};
  const visit = (part: Json): void => {
    if (Array.isArray(part)) for (const entry of part) visit(entry);
    if (!isObject(part)) return;
    if (typeof part.$ref === 'string') take(part.$ref);
    for (const [key, value] of Object.entries(part)) if (key !== 'example') visit(value);
  };
  const take = (reference: string): void => {
    const [, , kind = '', name = ''] = reference.split('/');
    used[kind] ??= {};
    const known = used[kind];
    if (name in known) return;
    const made = plain(referenced(reference)) ?? {};
    known[name] = made;
    visit(made);
  };
  visit(paths);
  const sorted = Object.entries(used).map(([kind, named]) => [
    kind,
    Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1))),
  ]);
  return {
    securitySchemes: objectAt(objectAt(document, 'components'), 'securitySchemes'),
    ...Object.fromEntries(sorted),
  };
}
