/** openapi-2.yaml is made of openapi.yaml and of a story of requests to a service. `UPDATE=1 npm test -- test/openapi2` writes it. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { parse, stringify } from 'yaml';
import { versionText } from '../../src/placement/versions.ts';
import { errorCodes } from '../../src/request/errors.ts';
import { validator } from '../openapi/contract.ts';
import { isObject, type Json, objectAt, referenced, stringsAt } from '../openapi/document.ts';
import { tellStory } from './story.ts';
import { version, versionTwo } from './version_2.ts';

const file = path.join(import.meta.dirname, '..', '..', 'openapi-2.yaml');
const document = versionTwo(await tellStory(`placement ${versionText(version)}`));
/** Many parsers read YAML 1.1, where a time without quotes is no text, and `no` is false. */
const made = `# Made of openapi.yaml; see test/openapi2.\n${stringify(document, {
  lineWidth: 140,
  aliasDuplicateObjects: false,
  compat: 'yaml-1.1',
})}`;

test('openapi-2.yaml is what openapi.yaml says of the newest version 2', async () => {
  if (process.env.UPDATE !== undefined) await writeFile(file, made);
  assert.equal(await readFile(file, 'utf8'), made);
});

test('parsers of YAML 1.1 read the same as those of YAML 1.2', () => {
  assert.deepEqual(parse(made, { version: '1.1' }), parse(made));
});

test('openapi-2.yaml has an example for each body, and nothing that generators do not know', () => {
  const keywords = new Set<string>();
  const visit = (part: Json): void => {
    if (Array.isArray(part)) for (const entry of part) visit(entry);
    if (!isObject(part)) return;
    for (const [key, value] of Object.entries(part)) {
      keywords.add(key);
      if (key !== 'example') visit(value);
    }
  };
  visit(document);
  for (const keyword of ['x-openstack', 'oneOf', 'anyOf', 'allOf', 'patternProperties', 'unevaluatedProperties']) {
    assert.ok(!keywords.has(keyword), keyword);
  }
  const without: string[] = [];
  let bodies = 0;
  for (const item of Object.values(objectAt(document, 'paths')).filter(isObject)) {
    for (const operation of Object.values(item).filter(isObject)) {
      const responses = Object.entries(objectAt(operation, 'responses')).filter(([status]) => status.startsWith('2'));
      const contents = [objectAt(operation, 'requestBody'), ...responses.map(([, response]) => response)]
        .filter(isObject)
        .map((body) => objectAt(objectAt(body, 'content'), 'application/json'))
        .filter((content) => 'schema' in content);
      bodies += contents.length;
      if (contents.some((content) => !('example' in content))) without.push(String(operation.operationId));
    }
  }
  assert.ok(bodies > 40, `${bodies}`);
  assert.deepEqual(without, []);
});

test('each code of an error is one that it names', () => {
  const named = stringsAt(referenced('#/components/schemas/ErrorCode', document), 'enum');
  assert.deepEqual([...named].sort(), Object.values(errorCodes).sort());
});

test('a claim has a type that the service takes, and may have what a placement was answered with', () => {
  const claim = referenced('#/components/schemas/Claim', document);
  const properties = objectAt(claim, 'properties');
  const complaintsOf = (name: string, value: Json) => validator(objectAt(properties, name))(value);
  assert.deepEqual(complaintsOf('consumer_type', 'JOB'), []);
  assert.deepEqual(complaintsOf('consumer_type', 'unknown'), []);
  assert.notDeepEqual(complaintsOf('consumer_type', 'job'), []);
  assert.equal('propertyNames' in objectAt(properties, 'mappings'), false);
});

test('what a consumer holds may be nothing', () => {
  const get = objectAt(objectAt(objectAt(document, 'paths'), '/allocations/{consumer_uuid}'), 'get');
  const content = objectAt(objectAt(objectAt(get, 'responses'), '200'), 'content');
  const shown = objectAt(objectAt(objectAt(content, 'application/json'), 'schema'), 'properties');
  assert.deepEqual(Object.keys(objectAt(shown, 'allocations')).sort(), [
    'additionalProperties',
    'propertyNames',
    'type',
  ]);
});

test('each answer that says to come again later names the header with the time', () => {
  let later = 0;
  for (const item of Object.values(objectAt(document, 'paths')).filter(isObject)) {
    for (const operation of Object.values(item).filter(isObject)) {
      for (const [status, response] of Object.entries(objectAt(operation, 'responses'))) {
        if (!['410', '429', '503'].includes(status) || !isObject(response)) continue;
        const { headers } = referenced(String(response.$ref), document);
        assert.ok(isObject(headers) && 'Retry-After' in headers, `${String(operation.operationId)} ${status}`);
        later += 1;
      }
    }
  }
  assert.ok(later > 5, `${later}`);
});
