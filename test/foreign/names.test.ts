/** Names with a special meaning in JavaScript, at places where the API accepts only UUIDs and capital letters. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at } from '../support/requests.ts';
import { claimOf, holder, host, withDeployment } from './deployment.ts';

for (const name of ['__proto__', 'constructor']) {
  test(`${name} is an ordinary name of consumer types, consumers and providers`, async () => {
    await withDeployment(async ({ succeed, execute }) => {
      await execute(`update consumer_types set name = '${name}'`);
      const usages = await succeed('GET', '/usages?project_id=p');
      assert.deepEqual(entriesAt(usages.json, 'usages'), [[name, { consumer_count: 1, VCPU: 2 }]]);

      await execute(`update consumers set uuid = '${name}'`, `update allocations set consumer_id = '${name}'`);
      const hosted = await succeed('GET', `/resource_providers/${host}/allocations`);
      assert.deepEqual(entriesAt(hosted.json, 'allocations'), [
        [name, { resources: { VCPU: 2 }, consumer_generation: 1 }],
      ]);

      await execute(`update consumers set uuid = '${holder}'`, `update allocations set consumer_id = '${holder}'`);
      await execute(`update resource_providers set uuid = '${name}'`);
      const held = await succeed('GET', `/allocations/${holder}`);
      assert.deepEqual(entriesAt(held.json, 'allocations'), [[name, { resources: { VCPU: 2 }, generation: 2 }]]);
    });
    assert.ok(!('VCPU' in {}) && !('resources' in Object), 'nothing was written into the prototype of all objects');
  });
}

test('a consumer type that another program has named unknown counts among those of an unknown type', () =>
  withDeployment(async ({ send, succeed, execute }) => {
    await execute("update consumer_types set name = 'unknown'");
    const untyped = '00000000-0000-4000-8000-000000000012';
    const { consumer_type: _, ...claim } = claimOf(3);
    const { status, text } = await send('PUT', `/allocations/${untyped}`, claim, 'placement 1.37');
    assert.equal(status, 204, text);
    const usages = await succeed('GET', '/usages?project_id=p&consumer_type=unknown', undefined, 'placement 1.38');
    assert.deepEqual(entriesAt(usages.json, 'usages'), [['unknown', { consumer_count: 2, VCPU: 5 }]]);
  }));

const entriesAt = (json: unknown, key: string) => Object.entries(at(json, key) ?? {});
