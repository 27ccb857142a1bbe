/** openapi-compute.yaml has the routes of the service at exactly their versions, and can be read at each of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computeRoutes } from '../../src/compute/compute_api.ts';
import { computeService } from '../../src/compute/versions.ts';
import { versionOfText, versionText, versionTexts } from '../../src/placement/versions.ts';
import { checkComputeExchange } from './compute_exchange.ts';
import { contractFor, operations, validator } from './contract.ts';
import { computeDocument, exists, isObject, type Json, objectAt, referenced } from './document.ts';

const versions = versionTexts(computeService).map(versionOfText);
const inBraces = (path: string): string => path.replace(/:([a-z_]+)/g, '{$1}');

test('the routes of each version are those of the document', () => {
  for (const version of versions) {
    const served = computeRoutes
      .filter(({ since, until }) => since <= version && version <= (until ?? version))
      .map(({ method, path }) => `${method} ${inBraces(path)}`);
    const written = operations(computeDocument)
      .filter(({ operation }) => exists(operation, version))
      .map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual([...new Set(served)].sort(), [...new Set(written)].sort(), versionText(version));
  }
});

test('every schema compiles at each version, and every component is used', () => {
  const used = new Set<string>();
  const walk = (part: Json): void => {
    if (Array.isArray(part)) part.forEach(walk);
    if (!isObject(part)) return;
    if (typeof part.$ref === 'string') {
      referenced(part.$ref, computeDocument);
      used.add(part.$ref);
    }
    Object.values(part).forEach(walk);
  };
  walk(computeDocument);
  for (const kind of ['headers', 'responses', 'schemas']) {
    for (const name of Object.keys(objectAt(objectAt(computeDocument, 'components'), kind))) {
      const isForOtherPaths = name === 'MethodNotAllowed' || name === 'Error';
      assert.ok(isForOtherPaths || used.has(`#/components/${kind}/${name}`), `nothing refers to ${name}`);
    }
  }
  for (const version of versions) {
    for (const { method, path } of operations(computeDocument)) {
      const { operation, responses } = contractFor(method, path, version, computeDocument);
      const schemas = [...Object.values(responses), objectAt(operation ?? {}, 'requestBody')].flatMap((part) =>
        isObject(part) ? [objectAt(objectAt(part, 'content'), 'application/json').schema] : [],
      );
      for (const schema of schemas) if (schema !== undefined) validator(schema)({});
    }
  }
});

test('an answer of another version is reported', () => {
  const service = {
    id: 1,
    binary: 'nova-compute',
    host: 'h',
    zone: 'nova',
    status: 'enabled',
    state: 'up',
    updated_at: null,
    disabled_reason: null,
  };
  const check = (minor: number, body: object) =>
    checkComputeExchange({
      method: 'GET',
      path: '/compute/v2.1/os-services',
      requestHeaders: { 'x-auth-token': 'admin', 'openstack-api-version': `compute 2.${minor}` },
      status: 200,
      responseHeaders: {
        'openstack-api-version': `compute 2.${minor}`,
        'x-openstack-nova-api-version': `2.${minor}`,
        'openstack-api-minimum-version': 'compute 2.1',
        'openstack-api-maximum-version': 'compute 2.75',
      },
      responseBody: JSON.stringify({ services: [body] }),
    });
  const uuid = '11111111-2222-4333-8444-555555555555';
  assert.deepEqual(check(10, service), []);
  assert.deepEqual(check(11, { ...service, forced_down: false }), []);
  assert.deepEqual(check(53, { ...service, id: uuid, forced_down: false }), []);
  assert.match(check(10, { ...service, forced_down: false }).join(), /forced_down/);
  assert.match(check(11, service).join(), /forced_down/);
  assert.notDeepEqual(check(52, { ...service, id: uuid, forced_down: false }), []);
  assert.notDeepEqual(check(53, { ...service, forced_down: false }), []);
});
