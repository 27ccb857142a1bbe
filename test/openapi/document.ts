/** openapi.yaml as data, and its form at one microversion. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { type Version, versionOfText } from '../../src/placement/versions.ts';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object under a key, or an empty one. */
export function objectAt(node: JsonObject, key: string): JsonObject {
  const value = node[key];
  return isObject(value) ? value : {};
}

/** The strings of the list under a key. Empty if there is no list. */
export function stringsAt(node: JsonObject, key: string): readonly string[] {
  const value = node[key];
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}

function load(name: string): JsonObject {
  const file = path.resolve(import.meta.dirname, '../..', name);
  const parsed: unknown = parse(readFileSync(file, 'utf8'), { merge: true });
  if (!isObject(parsed)) throw new Error(`${file} is not a mapping. Write an OpenAPI document there.`);
  return parsed;
}

export const document: JsonObject = load('openapi.yaml');
/** The document of the registry of services, whose versions are 2.1 to 2.75. */
export const computeDocument: JsonObject = load('openapi-compute.yaml');

/** The target of a reference of the form `#/a/b/c`. */
export function referenced(reference: string, root: JsonObject = document): JsonObject {
  let node: Json = root;
  for (const part of reference.replace(/^#\//, '').split('/')) {
    node = objectAt(node, part.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  if (Object.keys(node).length === 0)
    throw new Error(`openapi.yaml has nothing at ${reference}. Correct the reference.`);
  return node;
}

function versionIn(version: Json, key: string): Version {
  if (typeof version !== 'string' || !/^[12]\.\d+$/.test(version))
    throw new Error(`${key} is ${JSON.stringify(version)} in openapi.yaml. Quote a version like '1.8'.`);
  return versionOfText(version);
}

/** Whether the `x-openstack` range of a part includes a version. */
export function exists(part: JsonObject, version: Version): boolean {
  const { 'min-ver': first, 'max-ver': last } = objectAt(part, 'x-openstack');
  if (first !== undefined && version < versionIn(first, 'min-ver')) return false;
  return last === undefined || version <= versionIn(last, 'max-ver');
}

/**
 * A part of the document in its form at a version. Parts whose range does not have the version are removed, and so are
 * their names in `required`. References are replaced by their targets, and keys beside `$ref` are added to the target.
 *
 * @returns undefined if the part itself does not exist at the version
 */
export function atVersion(part: Json, version: Version, root: JsonObject = document): Json | undefined {
  if (Array.isArray(part)) {
    return part.map((entry) => atVersion(entry, version, root)).filter((entry) => entry !== undefined);
  }
  if (!isObject(part)) return part;
  if (!exists(part, version)) return undefined;
  if (typeof part.$ref === 'string') {
    const { $ref, ...beside } = part;
    const target = referenced(part.$ref, root);
    if (!exists(target, version)) return undefined;
    return atVersion({ ...target, ...beside }, version, root);
  }
  const read: Record<string, Json> = {};
  for (const [key, value] of Object.entries(part)) {
    const seen = atVersion(value, version, root);
    if (seen !== undefined) read[key] = seen;
  }
  if (isObject(part.properties) && Array.isArray(part.required)) {
    const { properties: written } = part;
    const kept = objectAt(read, 'properties');
    read.required = stringsAt(part, 'required').filter((name) => !(name in written) || name in kept);
  }
  const requiredUpTo = objectAt(part, 'x-openstack')['required-max-ver'];
  if (requiredUpTo !== undefined) read.required = version <= versionIn(requiredUpTo, 'required-max-ver');
  return read;
}
