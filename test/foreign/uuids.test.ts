/** UUIDs of providers that the API would refuse: SQL may write any text of up to 36 characters. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { placementService } from '../../src/placement/microversions.ts';
import { versionTexts } from '../../src/placement/versions.ts';
import { formOf } from '../races/fleet_form.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at } from '../support/requests.ts';
import { claimOf, type Deployment, holder, host, makeHolder, openDeployment, withDeployment } from './deployment.ts';

const odd: readonly string[] = [
  'a "quoted" one',
  "'; drop table x; --",
  'back\\slash\\',
  '{a,b,NULL}',
  'line\nfeed\r\ttab',
  '100% ?a=b&c#d;e',
  'W/"etag", "other"',
  'Rechenzentrum Köln 東京 🖥',
  ' spaces at both ends ',
  '<b>HTML</b>',
  '',
];
const child = '00000000-0000-4000-8000-000000000002';
const other = '00000000-0000-4000-8000-000000000012';
const versions = ['1.10', '1.12', '1.29', '1.34', ...versionTexts(placementService).slice(39)];

let deployment: Deployment;
before(async () => {
  deployment = await openDeployment(anyEngine);
});
after(() => deployment.service.close());

for (const uuid of odd) {
  test(`a provider with the UUID ${JSON.stringify(uuid)} is shown and changed like others`, async () => {
    const { service, send, execute } = deployment;
    await makeHolder(deployment);
    accepted(await send('POST', '/resource_providers', { uuid: child, name: 'child', parent_provider_uuid: host }));
    const stored = `'${uuid.replaceAll("'", "''")}'`;
    await execute(`update resource_providers set uuid = ${stored} where uuid = '${host}'`);
    assert.deepEqual(formOf(await service.fleet.fresh()), formOf((await loadFleet(service.database)).living.fleet));
    const self = `/resource_providers/${encodeURIComponent(uuid)}`;
    for (const minor of versions) {
      const version = `placement ${minor}`;
      const get = async (path: string) => {
        const answer = accepted(await send('GET', path, undefined, version));
        assert.notEqual(answer.json, undefined, `${path} has JSON`);
        return answer.json;
      };
      const listed = at(await get('/resource_providers'), 'resource_providers');
      assert.ok(Array.isArray(listed) && listed.some((each) => at(each, 'uuid') === uuid), minor);
      if (minor >= '1.14') {
        const children = await get(`/resource_providers?in_tree=${child}`);
        assert.equal(at(children, 'resource_providers', 1, 'parent_provider_uuid'), uuid);
      }
      const candidates = await get('/allocation_candidates?resources=VCPU:1');
      assert.equal(at(candidates, 'provider_summaries', uuid, 'resources', 'VCPU', 'used'), 2);
      const request = at(candidates, 'allocation_requests', 0, 'allocations');
      const taken = { resources: { VCPU: 1 } };
      if (minor === '1.10') assert.deepEqual(request, [{ resource_provider: { uuid }, ...taken }]);
      else assert.deepEqual(request, { [uuid]: taken });
      if (minor >= '1.34') assert.deepEqual(at(candidates, 'allocation_requests', 0, 'mappings'), { '': [uuid] });
      const held = at(await get(`/allocations/${holder}`), 'allocations', uuid, 'resources');
      assert.deepEqual(held, { VCPU: 2 });
    }
    // A slash separates parts of a path, escaped or not, as in upstream. So a provider with a slash in its UUID, or
    // without a UUID, has no path.
    const hasPath = uuid !== '' && !uuid.includes('/');
    if (hasPath) {
      const provider = accepted(await send('GET', self, undefined, 'placement 2.1'));
      assert.equal(at(provider.json, 'uuid'), uuid);
      assert.equal(at(provider.json, 'links', 0, 'href'), self);
      assert.equal(provider.headers.get('etag'), at(provider.json, 'etag'));
      assert.match(provider.headers.get('etag') ?? '', /^W\/"[0-9a-f]{128}"$/);
      const guarded = { resource_provider_generation: 2 };
      accepted(await send('PUT', `${self}/traits`, { ...guarded, traits: ['HW_CPU_X86_VMX'] }));
      const added = await send('POST', `${self}/inventories`, { resource_class: 'MEMORY_MB', total: 8 });
      assert.ok(accepted(added).headers.get('location')?.endsWith(`${self}/inventories/MEMORY_MB`));
      accepted(await send('PUT', `${self}/aggregates`, { resource_provider_generation: 4, aggregates: [other] }));
      accepted(await send('DELETE', `${self}/inventories/MEMORY_MB`));
      for (const part of ['inventories', 'traits', 'aggregates', 'usages', 'allocations']) {
        accepted(await send('GET', `${self}/${part}`));
      }
      accepted(await send('PUT', self, { name: 'renamed' }));
    }
    const { status } = await send('PUT', `/allocations/${other}`, {
      ...claimOf(1),
      allocations: { [uuid]: { resources: { VCPU: 1 } } },
    });
    assert.equal(status, 400, 'a claim names UUIDs only');
    accepted(await send('GET', '/metrics'));
    accepted(await send('DELETE', `/allocations/${holder}`));
    accepted(await send('DELETE', `/resource_providers/${child}`));
    // What has no path is deleted under the UUID that it had before.
    if (!hasPath) await execute(`update resource_providers set uuid = '${host}' where uuid = ${stored}`);
    accepted(await send('DELETE', hasPath ? self : `/resource_providers/${host}`));
    assert.deepEqual(at((await send('GET', '/resource_providers')).json, 'resource_providers'), []);
  });
}

for (const uuid of ['0000ABCD-0000-4000-8000-0000000000EF', '0000abcd0000400080000000000000ef']) {
  test(`what GET shows of a provider with the UUID ${uuid} may be sent back`, async () => {
    await withDeployment(async ({ send, succeed, execute }) => {
      await execute(`update resource_providers set uuid = '${uuid}' where uuid = '${host}'`);
      const self = `/resource_providers/${uuid}`;
      const { json } = await succeed('GET', self, undefined, 'placement 2.1');
      assert.ok(typeof json === 'object');
      const renamed = await succeed('PUT', self, { ...json, name: 'renamed' }, 'placement 2.1');
      assert.deepEqual([at(renamed.json, 'uuid'), at(renamed.json, 'name')], [uuid, 'renamed']);
      const { status } = await send('PUT', self, { ...json, uuid: child }, 'placement 2.1');
      assert.equal(status, 400, 'a UUID cannot be changed');
    });
  });
}
