/** The fields of a body, as paths such as `inventories.*.total`: by a schema of the service, and by one of openapi.yaml. */
import { isObject, type Json } from './document.ts';

/**
 * The fields that a schema of the service names. `opaque` has the paths of fields whose content the schema does not
 * name.
 */
export type Fields = { readonly named: ReadonlySet<string>; readonly opaque: ReadonlySet<string> };

/** A valibot schema as data: which of these keys it has depends on its type. */
type Node = {
  readonly type?: unknown;
  readonly pipe?: readonly unknown[];
  readonly wrapped?: unknown;
  readonly entries?: unknown;
  readonly item?: unknown;
  readonly value?: unknown;
  readonly options?: readonly unknown[];
};

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

/** The fields of a schema of the service. */
export function fieldsOf(schema: unknown): Fields {
  const named = new Set<string>();
  const opaque = new Set<string>();
  const visit = (node: unknown, path: string): void => {
    if (!isNode(node)) return;
    if (node.pipe !== undefined) {
      const schemas = node.pipe.filter((part) => isNode(part) && 'kind' in part && part.kind === 'schema');
      const checks = node.pipe.some((part) => isNode(part) && part.type === 'raw_check');
      // A record, or a check of its own for keys that it does not name.
      if (checks && schemas.every((part) => isNode(part) && part.type === 'custom')) opaque.add(path);
      for (const part of schemas) if (part !== node) visitAlone(part, path);
      return;
    }
    visitAlone(node, path);
  };
  const visitAlone = (node: unknown, path: string): void => {
    if (!isNode(node)) return;
    if (node.type === 'record') {
      named.add(`${path}*`);
      visit(node.value, `${path}*.`);
    } else if (node.type === 'array') visit(node.item, `${path}[].`);
    else if (isNode(node.entries)) {
      for (const [name, value] of Object.entries(node.entries)) {
        named.add(path + name);
        visit(value, `${path}${name}.`);
      }
    } else if (Array.isArray(node.options)) for (const option of node.options) visit(option, path);
    else visit(node.wrapped, path);
  };
  visit(schema, '');
  return { named, opaque };
}

/** The fields of a schema of openapi.yaml, in its form at one version. */
export function writtenFields(schema: Json | undefined, path = ''): ReadonlySet<string> {
  if (!isObject(schema)) return new Set();
  const { properties, additionalProperties, patternProperties, items } = schema;
  const found = new Set<string>();
  const add = (name: string, value: Json | undefined) => {
    found.add(path + name);
    for (const inner of writtenFields(value, `${path}${name}.`)) found.add(inner);
  };
  if (isObject(properties)) for (const [name, value] of Object.entries(properties)) add(name, value);
  if (isObject(patternProperties)) for (const value of Object.values(patternProperties)) add('*', value);
  if (isObject(additionalProperties)) add('*', additionalProperties);
  if (isObject(items)) for (const inner of writtenFields(items, `${path}[].`)) found.add(inner);
  for (const choice of ['oneOf', 'anyOf', 'allOf'] as const) {
    const options = schema[choice];
    if (!Array.isArray(options)) continue;
    for (const option of options) for (const inner of writtenFields(option, path)) found.add(inner);
  }
  return found;
}
