/**
 * Allocation ratios that are not finite numbers: SQL may write them, and upstream's reshaper stores NaN. And columns of
 * other types.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { maxRatio } from '../../src/placement/inventory.ts';
import { formOf } from '../races/fleet_form.ts';
import { at } from '../support/requests.ts';
import { claimOf, type Deployment, host, withDeployment } from './deployment.ts';

const other = '/allocations/00000000-0000-4000-8000-000000000012';

const cases = [
  { stored: 'NaN', shown: 0, claimed: 409 },
  { stored: '-Infinity', shown: -maxRatio, claimed: 409 },
  { stored: 'Infinity', shown: maxRatio, claimed: 204 },
  { stored: '1e308', shown: maxRatio, claimed: 204 },
];

for (const { stored, shown, claimed } of cases) {
  test(`a ratio of ${stored} is shown as a number, and does not allow unlimited claims`, async () => {
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
      assert.equal(typeof capacity, 'number', 'JSON would have null for it');
      const { json: read } = await succeed('GET', `/resource_providers/${host}/inventories`);
      const written = await send('PUT', `/resource_providers/${host}/inventories`, read);
      assert.equal(written.status, shown < 0 ? 400 : 200, JSON.stringify(written.json));
    });
  });
}

/** Changes the type of the column. `alter table` refuses this while a trigger names the column. */
const retype = (type: string) => `do $$ declare definition text; begin
  select pg_get_triggerdef(oid) into definition from pg_trigger
    where tgrelid = 'inventories'::regclass and tgname = 'etag_row';
  drop trigger etag_row on inventories;
  alter table inventories alter column allocation_ratio type ${type};
  execute definition;
end $$`;

const put = ({ send }: Deployment, generation: number, ratio: number) =>
  send('PUT', `/resource_providers/${host}/inventories`, {
    resource_provider_generation: generation,
    inventories: { VCPU: { total: 8, allocation_ratio: ratio } },
  });

for (const [type, tooFine] of [
  ['real', 1e-60],
  ['numeric', undefined],
  ['numeric(10, 4)', 1e30],
] as const) {
  test(`a column of type ${type} stores ratios, and a value that it cannot store is refused`, async () => {
    await withDeployment(async (deployment) => {
      const { service, succeed, send, execute } = deployment;
      await execute(retype(type), 'update inventories set allocation_ratio = 1.3');
      const shown = async () =>
        at((await succeed('GET', `/resource_providers/${host}/inventories/VCPU`)).json, 'allocation_ratio');
      assert.equal(await shown(), 1.3);
      assert.equal((await send('PUT', other, claimOf(9))).status, 409, '10 of 10.4 are there, of which 2 are taken');
      await succeed('PUT', other, claimOf(8));
      assert.equal((await put(deployment, 3, 1.7)).status, 200);
      assert.equal(await shown(), 1.7);
      if (tooFine !== undefined) {
        const refused = await put(deployment, 4, tooFine);
        assert.equal(refused.status, 400);
        assert.match(refused.text, /The database cannot store a number of the request: /);
      }
      assert.equal((await put(deployment, 4, 1.5)).status, 200);
      assert.deepEqual(formOf(await service.fleet.fresh()), formOf((await loadFleet(service.database)).living.fleet));
    });
  });
}
