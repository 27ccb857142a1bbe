/** Providers whose root is not the root of their parent: upstream can create a child while its parent is moved. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { onlineMigrations, runBatch } from '../../db/online/run.ts';
import { at } from '../support/requests.ts';
import { host, withDeployment } from './deployment.ts';

const [root, stray, child] = ['1', '2', '3'].map((digit) => `00000000-0000-4000-8000-00000000002${digit}`);

test('a provider that is the root of others, but has no children, can be deleted', async () => {
  await withDeployment(async ({ service, send, succeed, execute }) => {
    await succeed('POST', '/resource_providers', { uuid: root, name: 'root' });
    await succeed('POST', '/resource_providers', { uuid: stray, name: 'stray' });
    await succeed('POST', '/resource_providers', { uuid: child, name: 'child', parent_provider_uuid: root });
    const idOf = (uuid: string | undefined) => `(select id from resource_providers where uuid = '${uuid}')`;
    await execute(`update resource_providers set root_provider_id = ${idOf(root)} where uuid = '${stray}'`);
    const kept = await send('DELETE', `/resource_providers/${root}`);
    assert.equal(kept.status, 409);
    assert.equal(at(kept.json, 'errors', 0, 'code'), 'placement.resource_provider.cannot_delete_parent');

    await succeed('DELETE', `/resource_providers/${child}`);
    await succeed('DELETE', `/resource_providers/${root}`);
    const { json } = await succeed('GET', `/resource_providers/${stray}`);
    assert.equal(at(json, 'root_provider_uuid'), stray);
    await runBatch(onlineMigrations(service.database, { projectId: 'project', userId: 'user' }), 100);
    await execute(
      `do $$ begin assert (select id = root_provider_id from resource_providers where uuid = '${stray}'); end $$`,
    );
  });
});

test('a child is shown with the root of its parent, whatever root OpenStack has stored of the parent', async () => {
  await withDeployment(async ({ succeed, execute }) => {
    const provider = async (uuid: string | undefined, parent?: string) =>
      succeed('POST', '/resource_providers', { uuid, name: uuid, parent_provider_uuid: parent });
    const parents = [
      // Before it had roots it stored none.
      [root, 'null'],
      [stray, `(select id from resource_providers where uuid = '${host}')`],
    ] as const;
    for (const [parent, stored] of parents) {
      await provider(parent);
      await execute(`update resource_providers set root_provider_id = ${stored} where uuid = '${parent}'`);
      const below = randomUUID();
      const { json: created } = await provider(below, parent);
      assert.equal(at(created, 'root_provider_uuid'), parent);
      const { json: shown } = await succeed('GET', `/resource_providers/${below}`);
      assert.equal(at(shown, 'root_provider_uuid'), parent);
      const { json: listed } = await succeed('GET', `/resource_providers?in_tree=${below}`);
      assert.equal(at(listed, 'resource_providers', 'length'), 2);
      // Clients of OpenStack, which reads the stored root of a child, need it too.
      const storedOf = (uuid: string) => `(select root_provider_id from resource_providers where uuid = '${uuid}')`;
      const expected = stored === 'null' ? `(select id from resource_providers where uuid = '${parent}')` : stored;
      await execute(`do $$ begin assert ${storedOf(below)} = ${expected}; end $$`);
    }
  });
});
