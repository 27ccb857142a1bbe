/** Loops of parents. The API refuses to make them, but other programs can write them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { formOf } from '../races/fleet_form.ts';
import { anyEngine } from '../support/engines.ts';
import { at, makeProvider, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const uuidOf = (index: number) => `00000000-0000-4000-8000-00000000000${index}`;
const [first, second, third, below, other] = [1, 2, 3, 4, 5].map(uuidOf) as [string, string, string, string, string]; // five of five

/**
 * Calls back with a loop: the first provider is below the third, the third below the second, and the second below the
 * first.
 */
async function withLoop(use: (service: PlacementService, send: Send) => Promise<void>): Promise<void> {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 1.37');
    const parents = [undefined, first, second, third, undefined];
    for (const [index, uuid] of [first, second, third, below, other].entries()) {
      const more = { name: `p${index + 1}`, parent_provider_uuid: parents[index] };
      await makeProvider(send, uuid, { VCPU: { total: 8 } }, more);
    }
    await sql`update resource_providers set parent_provider_id = (select id from resource_providers where uuid = ${third})
      where uuid = ${first}`.execute(service.database.kysely);
    await use(service, send);
  });
}

/** Each provider with its parent and its root, as the API shows them. */
async function shape(service: PlacementService, send: Send): Promise<string> {
  const shown = formOf(await service.fleet.fresh());
  assert.deepEqual(
    shown,
    formOf((await loadFleet(service.database)).living.fleet),
    'a fresh load gives the same, however the loop was made',
  );
  const list = (await send('GET', '/resource_providers')).json as {
    resource_providers: { uuid: string; parent_provider_uuid: string | null; root_provider_uuid: string }[];
  }; // the API's shape
  const placeOf = (uuid: string | null) => (uuid === null ? '-' : uuid.slice(-1));
  return list.resource_providers
    .map((p) => `${placeOf(p.uuid)}: ${placeOf(p.parent_provider_uuid)} / ${placeOf(p.root_provider_uuid)}`)
    .sort()
    .join(', ');
}

test('a loop is shown as a tree whose root is the oldest provider in it', async () => {
  await withLoop(async (service, send) => {
    assert.equal(await shape(service, send), '1: 3 / 1, 2: 1 / 1, 3: 2 / 1, 4: 3 / 1, 5: - / 5');
    const inTree = await send('GET', `/resource_providers?in_tree=${below}`);
    assert.equal(at(inTree.json, 'resource_providers', 'length'), 4);
    const query =
      'resources=VCPU:1&resources_A=VCPU:8&resources_B=VCPU:8&resources_C=VCPU:8&group_policy=isolate&same_subtree=_A,_B';
    const candidates = await send('GET', `/allocation_candidates?${query}`);
    assert.equal(candidates.status, 200, candidates.text);
    assert.equal(at(candidates.json, 'allocation_requests', 'length'), 24, 'each order of the four');
  });
});

test('a provider that SQL moves into a loop of parents and out of it is shown where it is', async () => {
  await withLoop(async (service, send) => {
    await service.fleet.fresh();
    const put = (parent: string, child: string) =>
      sql`update resource_providers set parent_provider_id = (select id from resource_providers where uuid = ${parent})
        where uuid = ${child}`.execute(service.database.kysely);
    await put(other, second);
    assert.equal(await shape(service, send), '1: 3 / 5, 2: 5 / 5, 3: 2 / 5, 4: 3 / 5, 5: - / 5');
    await put(below, other);
    assert.equal(await shape(service, send), '1: 3 / 2, 2: 5 / 2, 3: 2 / 2, 4: 3 / 2, 5: 4 / 2');
  });
});

test('the API can rename every provider of a loop, and move it out of it', async () => {
  await withLoop(async (service, send) => {
    const rename = await send('PUT', `/resource_providers/${first}`, { name: 'renamed' });
    assert.equal(rename.status, 200, rename.text);
    assert.equal(
      await shape(service, send),
      '1: 3 / 1, 2: 1 / 1, 3: 2 / 1, 4: 3 / 1, 5: - / 5',
      'a new name alone moves no provider',
    );
    const loops = await send('PUT', `/resource_providers/${first}`, { name: 'p1', parent_provider_uuid: below });
    assert.equal(loops.status, 400, loops.text);
    const smaller = await send('PUT', `/resource_providers/${third}`, { name: 'p3', parent_provider_uuid: first });
    assert.equal(smaller.status, 400, smaller.text);
    const away = await send('PUT', `/resource_providers/${second}`, { name: 'p2', parent_provider_uuid: other });
    assert.equal(away.status, 200, away.text);
    assert.equal(await shape(service, send), '1: 3 / 5, 2: 5 / 5, 3: 2 / 5, 4: 3 / 5, 5: - / 5');
    const { rows } = await sql<{ root: string }>`
      select distinct root.uuid as root from resource_providers p join resource_providers root on root.id = p.root_provider_id`.execute(
      service.database.kysely,
    );
    assert.deepEqual(rows, [{ root: other }], 'all providers of the loop have moved');
  });
  await withLoop(async (service, send) => {
    const root = await send('PUT', `/resource_providers/${first}`, { name: 'p1', parent_provider_uuid: null });
    assert.equal(root.status, 200, root.text);
    const { rows } = await sql<{ parent: number | null }>`
      select parent_provider_id as parent from resource_providers where uuid = ${first}`.execute(
      service.database.kysely,
    );
    assert.deepEqual(rows, [{ parent: null }], 'the database has no loop any more');
    assert.equal(await shape(service, send), '1: - / 1, 2: 1 / 1, 3: 2 / 1, 4: 3 / 1, 5: - / 5');
  });
});
