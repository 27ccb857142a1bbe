/** openapi.yaml is consistent in itself and can be read at every microversion. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placementService } from '../../src/placement/microversions.ts';
import { versionOfText, versionText, versionTexts } from '../../src/placement/versions.ts';
import { newestVersion } from '../support/requests.ts';
import { contractFor, operations, validator } from './contract.ts';
import { document, isObject, type Json, type JsonObject, objectAt, referenced } from './document.ts';

/** Each object in a part of the document. */
function* objectsIn(part: Json): Generator<JsonObject> {
  if (Array.isArray(part)) for (const entry of part) yield* objectsIn(entry);
  if (!isObject(part)) return;
  yield part;
  for (const value of Object.values(part)) yield* objectsIn(value);
}

const versions = versionTexts(placementService).map(versionOfText);

test('its version is the newest microversion', () => {
  assert.equal(objectAt(document, 'info').version, newestVersion);
});

test('every reference has a target, and every component is used', () => {
  const used = new Set<string>();
  for (const part of objectsIn(document)) {
    if (typeof part.$ref !== 'string') continue;
    referenced(part.$ref);
    used.add(part.$ref);
  }
  for (const kind of ['parameters', 'headers', 'responses', 'schemas']) {
    for (const name of Object.keys(objectAt(objectAt(document, 'components'), kind))) {
      const reference = `#/components/${kind}/${name}`;
      assert.ok(used.has(reference) || name === 'MethodNotAllowed', `nothing refers to ${reference}`);
    }
  }
});

test('keys beside a reference replace no keys of its target', () => {
  for (const part of objectsIn(document)) {
    if (typeof part.$ref !== 'string') continue;
    const target = referenced(part.$ref);
    for (const key of Object.keys(part)) {
      if (key === '$ref' || key === 'description') continue;
      assert.ok(!(key in target), `${part.$ref} has ${key}, and so has a reference to it`);
    }
  }
});

test('version ranges have only the documented keys, and are not empty', () => {
  const known = ['min-ver', 'max-ver', 'below', 'error-codes', 'name-pattern', 'required-max-ver'];
  for (const part of objectsIn(document)) {
    if (!('x-openstack' in part)) continue;
    const range = objectAt(part, 'x-openstack');
    assert.deepEqual(
      Object.keys(range).filter((key) => !known.includes(key)),
      [],
    );
    const [first, last] = [range['min-ver'] ?? '1.0', range['max-ver'] ?? newestVersion];
    assert.match(String(first), /^[12]\.\d+$/);
    assert.match(String(last), /^[12]\.\d+$/);
    assert.ok(versionOfText(String(first)) <= versionOfText(String(last)), `${first} to ${last}`);
  }
});

test('an operation has a unique name, and lists its refusals', () => {
  const ids = operations().map(({ operation }) => operation.operationId);
  assert.equal(new Set(ids).size, ids.length);
  for (const { method, path, operation } of operations()) {
    const open = Array.isArray(operation.security) && operation.security.length === 0;
    const expected = open ? ['400', '406'] : ['400', '401', '403', '406'];
    if ('requestBody' in operation) expected.push('413', '415');
    const statuses = Object.keys(objectAt(operation, 'responses'));
    for (const status of expected) assert.ok(statuses.includes(status), `${method} ${path} does not list ${status}`);
    assert.ok(
      statuses.some((status) => status.startsWith('2')),
      `${method} ${path} lists no success`,
    );
  }
});

test('each schema compiles at every microversion, and each choice has at least one option', () => {
  let read = 0;
  for (const version of versions) {
    for (const { method, path } of operations()) {
      const { operation, parameters } = contractFor(method, path, version);
      for (const part of [...objectsIn(operation ?? {}), ...parameters.flatMap((it) => [...objectsIn(it)])]) {
        if (isObject(part.schema)) {
          validator(part.schema);
          read += 1;
        }
        for (const choice of ['oneOf', 'anyOf']) {
          if (Array.isArray(part[choice]))
            assert.notEqual(part[choice].length, 0, `${method} ${path} at ${versionText(version)}`);
        }
      }
    }
  }
  assert.ok(read > 10_000, `only ${read} schemas were read`);
});
