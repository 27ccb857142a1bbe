/** Every route of the service is in openapi.yaml at exactly its versions, and the reverse. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routes } from '../../src/api/routes.ts';
import { placementService } from '../../src/placement/microversions.ts';
import { versionOfText, versionTexts } from '../../src/placement/versions.ts';
import { operations } from './contract.ts';
import { exists, objectAt } from './document.ts';

/** A path with its parameters in braces, from `:name` as the router writes them. */
function inBraces(path: string): string {
  return (path === '' ? '/' : path).replace(/:([a-z_]+)(?:\{[^}]*\})?/g, '{$1}');
}

for (const text of versionTexts(placementService)) {
  const version = versionOfText(text);
  test(`the routes of ${text} are those of openapi.yaml`, () => {
    const served = routes
      .filter(({ since, until }) => since <= version && version <= (until ?? version))
      .map(({ method, path }) => `${method} ${inBraces(path)}`);
    const written = operations()
      .filter(({ operation }) => exists(operation, version))
      .map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual([...new Set(served)].sort(), [...new Set(written)].sort());
  });
}

test('an operation answers requests of older versions as openapi.yaml says', () => {
  for (const { method, path, operation } of operations()) {
    const route = routes.find((it) => it.method === method && inBraces(it.path) === path);
    const below = objectAt(operation, 'x-openstack').below ?? '404';
    if (route !== undefined) assert.equal(String(route.absentStatus ?? 404), below, `${method} ${path}`);
  }
});
