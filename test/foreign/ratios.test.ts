/** Allocation ratios by which nothing can be reckoned: SQL may write them, and upstream's reshaper stores NaN. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadFleet } from '../../src/fleet/load.ts';
import { maxRatio } from '../../src/placement/inventory.ts';
import { formOf } from '../races/fleet_form.ts';
import { at } from '../requests.ts';
import { claimOf, host, withDeployment } from './deployment.ts';

const other = '/allocations/00000000-0000-4000-8000-000000000012';

const cases = [
  { stored: 'NaN', shown: 0, claimed: 409 },
  { stored: '-Infinity', shown: -maxRatio, claimed: 409 },
  { stored: 'Infinity', shown: maxRatio, claimed: 204 },
  { stored: '1e308', shown: maxRatio, claimed: 204 },
];

for (const { stored, shown, claimed } of cases) {
  test(`a ratio of ${stored} is shown as a number, and lets nobody claim without bounds`, async () => {
    await withDeployment(async ({ service, send, succeed, execute }) => {
      await execute(`update inventories set allocation_ratio = '${stored}', total = 2147483647`);
      const { json } = await succeed('GET', `/resource_providers/${host}/inventories/VCPU`);
      assert.equal(at(json, 'allocation_ratio'), shown);
      assert.deepEqual(formOf(await service.fleet.fresh()), formOf((await loadFleet(service.database)).living.fleet));
      const claim = await send('PUT', other, claimOf(9));
      assert.equal(claim.status, claimed, JSON.stringify(claim.json));
      await execute(`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
        step_size, allocation_ratio) select id, 1, 8, 0, 1, 8, 1, 1 from resource_providers`);
      const candidates = await succeed('GET', '/allocation_candidates?resources=MEMORY_MB:1');
      const capacity = at(candidates.json, 'provider_summaries', host, 'resources', 'VCPU', 'capacity');
      assert.equal(typeof capacity, 'number', 'null is none');
      const { json: read } = await succeed('GET', `/resource_providers/${host}/inventories`);
      const written = await send('PUT', `/resource_providers/${host}/inventories`, read);
      assert.equal(written.status, shown < 0 ? 400 : 200, JSON.stringify(written.json));
    });
  });
}
