/**
 * Generations and ids with the highest possible value. SQL may write them, and a higher number does not fit into the
 * column.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { formOf } from '../races/fleet_form.ts';
import { at } from '../support/requests.ts';
import { claimOf, holder, host, withDeployment } from './deployment.ts';

const highest = 2_147_483_647;
const path = `/resource_providers/${host}`;
const other = '00000000-0000-4000-8000-000000000012';

const writes: Readonly<Record<string, (generation: number) => readonly [method: string, path: string, body: object]>> =
  {
    traits: (generation) => [
      'PUT',
      `${path}/traits`,
      { resource_provider_generation: generation, traits: ['HW_CPU_X86_VMX'] },
    ],
    aggregates: (generation) => [
      'PUT',
      `${path}/aggregates`,
      { resource_provider_generation: generation, aggregates: [other] },
    ],
    inventories: (generation) => [
      'PUT',
      `${path}/inventories`,
      { resource_provider_generation: generation, inventories: { VCPU: { total: 9 } } },
    ],
    'an inventory': (generation) => [
      'PUT',
      `${path}/inventories/VCPU`,
      { resource_provider_generation: generation, total: 9 },
    ],
    'a claim': () => ['PUT', `/allocations/${other}`, claimOf(1)],
    'a reshape': (generation) => [
      'POST',
      '/reshaper',
      {
        inventories: { [host]: { resource_provider_generation: generation, inventories: { VCPU: { total: 9 } } } },
        allocations: {},
      },
    ],
  };

for (const [what, requestAt] of Object.entries(writes)) {
  test(`after the highest generation of a provider a write of ${what} sets a low one`, async () => {
    await withDeployment(async ({ service, succeed, send, execute }) => {
      await execute(`update resource_providers set generation = ${highest}`);
      const request = requestAt(highest);
      const answer = await succeed(...request);
      const { json } = await succeed('GET', path);
      // A reshape raises the generation by two.
      const after = what === 'a reshape' ? 1 : 0;
      assert.equal(at(json, 'generation'), after);
      const shown = at(answer.json, 'resource_provider_generation');
      if (shown !== undefined) assert.equal(shown, after);
      assert.deepEqual(formOf(await service.fleet.fresh()), formOf((await loadFleet(service.database)).living.fleet));
      if (what !== 'a claim') assert.equal((await send(...request)).status, 409, 'the highest generation is old now');
      await succeed('PUT', `/allocations/${holder}`, { ...claimOf(1), consumer_generation: 1 });
      assert.equal(at((await succeed('GET', path)).json, 'generation'), after + 1);
    });
  });
}

test('after the highest generation of a consumer comes a low one', async () => {
  await withDeployment(async ({ succeed, send, execute }) => {
    await execute(`update consumers set generation = ${highest}`);
    const claim = { ...claimOf(1), consumer_generation: highest };
    await succeed('PUT', `/allocations/${holder}`, claim);
    const { json } = await succeed('GET', `/allocations/${holder}`);
    assert.equal(at(json, 'consumer_generation'), 0);
    assert.equal((await send('PUT', `/allocations/${holder}`, claim)).status, 409);
    await succeed('PUT', `/allocations/${holder}`, { ...claim, consumer_generation: 0 });
  });
});

test('a generation that does not fit into the column matches nothing', async () => {
  await withDeployment(async ({ send }) => {
    for (const generation of [highest + 1, -highest - 2, 1e300]) {
      for (const [what, requestAt] of Object.entries(writes)) {
        if (what === 'a claim') continue;
        assert.equal((await send(...requestAt(generation))).status, 409, `${what} with ${generation}`);
      }
      const claim = { ...claimOf(1), consumer_generation: generation };
      for (const consumer of [holder, other]) {
        assert.equal((await send('PUT', `/allocations/${consumer}`, claim)).status, 409, `a claim with ${generation}`);
      }
    }
  });
});

test('if a class has the highest id, new classes get the lowest free ids', async () => {
  await withDeployment(async ({ service, succeed, execute }) => {
    await succeed('PUT', '/resource_classes/CUSTOM_A');
    await execute(
      `insert into resource_classes (id, name) values (${highest}, 'CUSTOM_HIGHEST'), (10002, 'CUSTOM_BETWEEN')`,
    );
    for (const name of ['CUSTOM_B', 'CUSTOM_C']) await succeed('PUT', `/resource_classes/${name}`);
    await succeed('POST', '/resource_classes', { name: 'CUSTOM_D' });
    const { kysely } = service.database;
    const rows = await kysely
      .selectFrom('resource_classes')
      .select(['id', 'name'])
      .where('id', '>=', 10_000)
      .orderBy('id')
      .execute();
    assert.deepEqual(
      rows.map(({ id, name }) => [id, name]),
      [
        [10_000, 'CUSTOM_A'],
        [10_001, 'CUSTOM_B'],
        [10_002, 'CUSTOM_BETWEEN'],
        [10_003, 'CUSTOM_C'],
        [10_004, 'CUSTOM_D'],
        [highest, 'CUSTOM_HIGHEST'],
      ],
    );
    await succeed('POST', `${path}/inventories`, { resource_class: 'CUSTOM_HIGHEST', total: 4 });
    const claim = { ...claimOf(1), allocations: { [host]: { resources: { CUSTOM_HIGHEST: 3 } } } };
    await succeed('PUT', `/allocations/${other}`, claim);
    const { json } = await succeed('GET', '/allocation_candidates?resources=CUSTOM_HIGHEST:1');
    const summary = at(json, 'provider_summaries', host, 'resources', 'CUSTOM_HIGHEST');
    assert.deepEqual(summary, { capacity: 4, used: 3 });
  });
});

for (const id of [highest, -highest - 1]) {
  test(`a provider may have the id ${id}`, async () => {
    await withDeployment(async ({ service, succeed, execute }) => {
      await execute(`insert into resource_providers (id, uuid, name, generation, root_provider_id)
        values (${id}, '${other}', 'other', 0, ${id})`);
      const inventories = { VCPU: { total: 8 } };
      await succeed('PUT', `/resource_providers/${other}/inventories`, {
        resource_provider_generation: 0,
        inventories,
      });
      const claim = { ...claimOf(1), allocations: { [other]: { resources: { VCPU: 8 } } } };
      await succeed('PUT', `/allocations/${other}`, claim);
      const usages = await succeed('GET', `/resource_providers/${other}/usages`);
      assert.deepEqual(at(usages.json, 'usages'), { VCPU: 8 });
      assert.deepEqual(formOf(await service.fleet.fresh()), formOf((await loadFleet(service.database)).living.fleet));
      await succeed('DELETE', `/allocations/${other}`);
      await succeed('DELETE', `/resource_providers/${other}`);
    });
  });
}
