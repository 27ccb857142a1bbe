import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim } from '../support/requests.ts';
import { errorOf, placed, providersOf, withHosts } from './placed.ts';

test('a consumer is placed by a query, and the answer is what GET shows', async () => {
  await withHosts(anyEngine, 3, async (send, hosts) => {
    const consumer = randomUUID();
    const answer = accepted(await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:2,MEMORY_MB:100')));
    assert.equal(answer.status, 200);
    const [host = ''] = providersOf(answer.json);
    assert.ok(hosts.includes(host));
    const shown = await send('GET', `/allocations/${consumer}`);
    assert.deepEqual(answer.json, { ...Object(shown.json), mappings: { '': [host] } });
    assert.deepEqual(at(answer.json, 'allocations', host, 'resources'), { VCPU: 2, MEMORY_MB: 100 });
    assert.equal(at(answer.json, 'consumer_generation'), 1);
    assert.equal(answer.headers.get('etag'), shown.headers.get('etag'));
  });
});

test('GET names the providers and their roots from 2.7 on, and what it shows may be sent back', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    const card = randomUUID();
    const parent_provider_uuid = host;
    accepted(await send('POST', '/resource_providers', { uuid: card, name: 'card', parent_provider_uuid }));
    const inventories = { PGPU: { total: 4 } };
    accepted(
      await send('PUT', `/resource_providers/${card}/inventories`, { resource_provider_generation: 0, inventories }),
    );
    const path = `/allocations/${randomUUID()}`;
    accepted(await send('PUT', path, placed('resources=PGPU:1')));
    for (const version of ['2.7', '2.8', '2.9'] as const) {
      const shown = Object(accepted(await send('GET', path, undefined, `placement ${version}`)).json);
      assert.deepEqual(shown.resource_providers, { [card]: { name: 'card', root: host } });
      accepted(await send('PUT', path, shown, `placement ${version}`));
      const again = Object((await send('GET', path, undefined, `placement ${version}`)).json);
      accepted(await send('POST', '/allocations', { [path.slice(13)]: again }, `placement ${version}`));
      const moved = Object((await send('GET', path, undefined, `placement ${version}`)).json);
      const { generation } = Object(moved.allocations)[card];
      const reshape = {
        inventories: { [card]: { resource_provider_generation: generation, inventories } },
        allocations: { [path.slice(13)]: moved },
      };
      accepted(await send('POST', '/reshaper', reshape, `placement ${version}`));
    }
    const older = await send('GET', path, undefined, 'placement 2.6');
    assert.equal(at(older.json, 'resource_providers'), undefined);
  });
});

test('consumers that are placed at the same time fill the capacity and no more', async () => {
  await withHosts(anyEngine, 3, async (send) => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => send('PUT', `/allocations/${randomUUID()}`, placed('resources=VCPU:2'))),
    );
    const statuses = answers.map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 200).length, 12);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      assert.equal(answer.status, 409);
      assert.equal(errorOf(answer).code, 'placement.no_candidates');
      assert.match(errorOf(answer).detail, /no tree meets resources=VCPU:2\b/);
    }
  });
});

test('the present allocations of a consumer count as free for its query', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    const consumer = randomUUID();
    accepted(await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:6')));
    accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
    const resized = await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:7', 1));
    assert.deepEqual(at(accepted(resized).json, 'allocations', host, 'resources'), { VCPU: 7 });
    assert.equal(at(resized.json, 'consumer_generation'), 2);
    const tooMuch = await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:8', 2));
    assert.equal(tooMuch.status, 409);
    const stale = await send('PUT', `/allocations/${consumer}`, placed('resources=VCPU:1', 1));
    assert.equal(errorOf(stale).code, 'placement.concurrent_update');
  });
});

test('a consumer that is placed again in its tree keeps the providers that it has, unless keys order others first', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    const devices = Array.from({ length: 8 }, () => randomUUID());
    for (const device of devices)
      await makeProvider(send, device, { PGPU: { total: 1 } }, { parent_provider_uuid: host });
    const groups = (count: number, more = '') =>
      `${Array.from({ length: count }, (_, index) => `resources${index}=PGPU:1&`).join('')}group_policy=isolate${more}`;
    const isIn = (few: readonly string[], many: readonly string[]): boolean => new Set(few).isSubsetOf(new Set(many));
    for (let round = 0; round < 5; round++) {
      const path = `/allocations/${randomUUID()}`;
      const three = providersOf(accepted(await send('PUT', path, placed(groups(3)))).json);
      const one = providersOf(accepted(await send('PUT', path, placed('resources=PGPU:1', 1))).json);
      assert.ok(isIn(one, three), `a group without a name: ${String(one)} of ${String(three)}`);
      const two = providersOf(accepted(await send('PUT', path, placed(groups(2, '&order=free:PGPU'), 2))).json);
      assert.ok(isIn(one, two), `two granular groups: ${String(two)} have ${String(one)}`);
      accepted(await send('DELETE', path));
    }
    const path = `/allocations/${randomUUID()}`;
    const chosen = new Set(providersOf(accepted(await send('PUT', path, placed('resources=PGPU:1'))).json));
    for (let round = 1; round < 20; round++) {
      const json = accepted(await send('PUT', path, placed('resources=PGPU:1&order=random', round))).json;
      for (const provider of providersOf(json)) chosen.add(provider);
    }
    assert.ok(chosen.size > 1, 'a random one where that is asked for');
  });
});

test('a consumer of a gang does not take the devices of one that is placed after it', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    for (let number = 0; number < 8; number++) {
      await makeProvider(send, randomUUID(), { PGPU: { total: 1 } }, { parent_provider_uuid: host });
    }
    for (let round = 0; round < 10; round++) {
      const [first, second] = [randomUUID(), randomUUID()];
      const had = new Map<string, readonly string[]>();
      for (const uuid of [first, second]) {
        had.set(
          uuid,
          providersOf(accepted(await send('PUT', `/allocations/${uuid}`, placed('resources=PGPU:1'))).json),
        );
      }
      const two = 'resources1=PGPU:1&resources2=PGPU:1&group_policy=isolate';
      const gang = { [first]: placed(two, 1), [second]: placed('resources=PGPU:1', 1) };
      const { json } = accepted(await send('POST', '/allocations', gang));
      for (const [uuid, devices] of had) {
        assert.ok(new Set(devices).isSubsetOf(new Set(providersOf(at(json, uuid)))), `${uuid} has ${devices.join()}`);
        accepted(await send('DELETE', `/allocations/${uuid}`));
      }
    }
  });
});

test('a device that was closed does not come first for the consumer that has it', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    for (let number = 0; number < 8; number++) {
      await makeProvider(send, randomUUID(), { PGPU: { total: 1 } }, { parent_provider_uuid: host });
    }
    const path = `/allocations/${randomUUID()}`;
    const placeAgain = async (generation: number | null) =>
      providersOf(accepted(await send('PUT', path, placed('resources=PGPU:1', generation))).json).join();
    const closed = await placeAgain(null);
    const inventory = { total: 1, reserved: 1, resource_provider_generation: 2 };
    accepted(await send('PUT', `/resource_providers/${closed}/inventories/PGPU`, inventory));
    const places = new Set<string>();
    for (let round = 1; round < 20; round++) places.add(await placeAgain(round));
    assert.ok([...places].some((place) => place !== closed));
  });
});

test('of several queries the first that fits counts', async () => {
  await withHosts(anyEngine, 2, async (send, [first = '', second = '']) => {
    accepted(
      await send('PUT', `/resource_providers/${first}/traits`, {
        resource_provider_generation: 1,
        traits: ['HW_CPU_X86_AVX'],
      }),
    );
    const avx = 'resources=VCPU:5&required=HW_CPU_X86_AVX';
    const either = placed([avx, 'resources=VCPU:5']);
    assert.deepEqual(providersOf(accepted(await send('PUT', `/allocations/${randomUUID()}`, either)).json), [first]);
    assert.deepEqual(providersOf(accepted(await send('PUT', `/allocations/${randomUUID()}`, either)).json), [second]);
    const refused = await send('PUT', `/allocations/${randomUUID()}`, either);
    assert.equal(errorOf(refused).code, 'placement.no_candidates');
    assert.match(
      errorOf(refused).detail,
      /query 1: no tree meets resources=VCPU:5\. query 2: no tree meets resources=VCPU:5\./,
    );
    const small = await send(
      'PUT',
      `/allocations/${randomUUID()}`,
      placed('resources=VCPU:3,MEMORY_MB:1001&required=HW_CPU_X86_AVX'),
    );
    assert.match(errorOf(small).detail, /no tree meets resources=MEMORY_MB:1001 and all conditions before it/);
  });
});
