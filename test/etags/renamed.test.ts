/** Another process renames a class: its former name, and an entity tag that was made of it, are of something else by then. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { afterRefresh } from '../races/after_refresh.ts';
import { accepted, at, makeProvider, newClaim, newestVersion, type Send } from '../support/requests.ts';
import { type TwoServices, withTwoServices } from '../support/two_services.ts';

type Scene = TwoServices & {
  /** A provider with inventories of VCPU, CUSTOM_HELD and CUSTOM_FREE, and a consumer that has the first two. */
  readonly provider: string;
  readonly consumer: string;
  /** Sends a request with If-Match to the first service, whose fleet does not know the new name yet. @returns the status */
  readonly sendMatching: (tag: string, method: string, path: string, body?: unknown) => Promise<number>;
};

async function withScene(use: (scene: Scene) => Promise<void>): Promise<void> {
  await withTwoServices(async (both) => {
    const { sendToOther } = both;
    const [provider, consumer] = [randomUUID(), randomUUID()];
    for (const name of ['CUSTOM_HELD', 'CUSTOM_FREE']) accepted(await sendToOther('PUT', `/resource_classes/${name}`));
    const all = { CUSTOM_HELD: { total: 8 }, CUSTOM_FREE: { total: 8 }, VCPU: { total: 8 } };
    await makeProvider(sendToOther, provider, all);
    const held = newClaim({ [provider]: { CUSTOM_HELD: 1, VCPU: 1 } });
    accepted(await sendToOther('PUT', `/allocations/${consumer}`, held));
    const { app } = both.services[0];
    const sendMatching: Scene['sendMatching'] = async (tag, method, path, body) => {
      const headers = {
        'x-auth-token': 'admin',
        'x-roles': 'admin,service',
        'openstack-api-version': `placement ${newestVersion}`,
        'content-type': 'application/json',
        'if-match': tag,
      };
      const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
      return (await app.request(path, init)).status;
    };
    await use({ ...both, provider, consumer, sendMatching });
  });
}

const rename = (send: Send, from: string, to: string) =>
  send('PUT', `/resource_classes/${from}`, { name: to }, 'placement 1.6');

async function tagOf(send: Send, path: string): Promise<string> {
  return String(at(accepted(await send('GET', path)).json, 'etag'));
}

/** What a tag is of, and the class in it that is renamed. */
const of = {
  inventories: { path: ({ provider }: Scene) => `/resource_providers/${provider}/inventories`, renamed: 'CUSTOM_FREE' },
  allocations: { path: ({ consumer }: Scene) => `/allocations/${consumer}`, renamed: 'CUSTOM_HELD' },
} as const;

type Matching = {
  readonly tagged: keyof typeof of;
  readonly request: (scene: Scene) => [method: string, path: string, body?: unknown];
};

const inventories = { VCPU: { total: 9 }, CUSTOM_HELD: { total: 9 } };
const newInventories = { resource_provider_generation: 2, inventories };
const putAllocations: Matching['request'] = (scene) => [
  'PUT',
  of.allocations.path(scene),
  { ...newClaim({ [scene.provider]: { VCPU: 2 } }), consumer_generation: 1 },
];

/** Requests with If-Match that would be done if nothing had been renamed. */
const requests: Readonly<Record<string, Matching>> = {
  'PUT of inventories': {
    tagged: 'inventories',
    request: (scene) => ['PUT', of.inventories.path(scene), newInventories],
  },
  'POST of an inventory': {
    tagged: 'inventories',
    request: (scene) => ['POST', of.inventories.path(scene), { resource_class: 'MEMORY_MB', total: 9 }],
  },
  reshaper: {
    tagged: 'inventories',
    request: ({ provider }) => ['POST', '/reshaper', { inventories: { [provider]: newInventories }, allocations: {} }],
  },
  'PUT of allocations': { tagged: 'allocations', request: putAllocations },
  'DELETE of allocations': { tagged: 'allocations', request: (scene) => ['DELETE', of.allocations.path(scene)] },
};

for (const [name, { tagged, request }] of Object.entries(requests)) {
  test(`a tag with the former name of a class is refused: ${name}`, async () => {
    await withScene(async (scene) => {
      const { send, sendToOther, refresh, sendMatching } = scene;
      const path = of[tagged].path(scene);
      const before = await tagOf(send, path);
      await refresh();
      accepted(await rename(sendToOther, of[tagged].renamed, 'CUSTOM_RENAMED'));
      assert.equal(await sendMatching(before, ...request(scene)), 412);
      assert.notEqual(await tagOf(sendToOther, path), before);
    });
  });
}

/** Lets two classes swap their names. */
async function swap(send: Send, one: string, other: string): Promise<void> {
  for (const [from, to] of [
    [one, 'CUSTOM_BETWEEN'],
    [other, one],
    ['CUSTOM_BETWEEN', other],
  ] as const) {
    accepted(await rename(send, from, to));
  }
}

/** The totals of the inventories of a provider, by the names of their classes. */
async function totalsOf({ sendToOther, provider }: Scene): Promise<unknown> {
  const { json } = await sendToOther('GET', `/resource_providers/${provider}/inventories`);
  return Object.fromEntries(
    Object.entries(Object(at(json, 'inventories'))).map(([name, inventory]) => [name, at(inventory, 'total')]),
  );
}

test('DELETE of one inventory deletes the inventory that has the name now', async () => {
  await withScene(async (scene) => {
    const { services, send, sendToOther, provider, consumer } = scene;
    accepted(await sendToOther('DELETE', `/allocations/${consumer}`));
    const different = { CUSTOM_HELD: { total: 1 }, CUSTOM_FREE: { total: 2 } };
    const path = `/resource_providers/${provider}/inventories`;
    accepted(await sendToOther('PUT', path, { resource_provider_generation: 2, inventories: different }));
    afterRefresh(services[0], 1, () => swap(sendToOther, 'CUSTOM_HELD', 'CUSTOM_FREE'));
    accepted(await send('DELETE', `${path}/CUSTOM_HELD`));
    assert.deepEqual(await totalsOf(scene), { CUSTOM_FREE: 1 });
  });
});

test('the reshaper writes inventories to the classes that have the names by now', async () => {
  await withScene(async (scene) => {
    const { send, sendToOther, refresh, provider, consumer } = scene;
    accepted(await sendToOther('DELETE', `/allocations/${consumer}`));
    const reshape = (generation: number, wanted: Readonly<Record<string, object>>) =>
      send('POST', '/reshaper', {
        inventories: { [provider]: { resource_provider_generation: generation, inventories: wanted } },
        allocations: {},
      });
    await refresh();
    await swap(sendToOther, 'CUSTOM_HELD', 'CUSTOM_FREE');
    accepted(await reshape(2, { CUSTOM_HELD: { total: 1 }, CUSTOM_FREE: { total: 2 } }));
    assert.deepEqual(await totalsOf(scene), { CUSTOM_HELD: 1, CUSTOM_FREE: 2 });

    await swap(sendToOther, 'CUSTOM_HELD', 'CUSTOM_FREE');
    accepted(await reshape(4, { CUSTOM_HELD: { total: 3 } }));
    assert.deepEqual(await totalsOf(scene), { CUSTOM_HELD: 3 });

    // A class that no provider has an inventory of.
    accepted(await sendToOther('PUT', '/resource_classes/CUSTOM_UNUSED'));
    await refresh();
    accepted(await rename(sendToOther, 'CUSTOM_UNUSED', 'CUSTOM_RENAMED'));
    assert.equal((await reshape(6, { CUSTOM_UNUSED: { total: 4 } })).status, 400);
    assert.deepEqual(await totalsOf(scene), { CUSTOM_HELD: 3 });
  });
});

test('allocations on a provider that the fleet does not show yet are part of the tag of a consumer', async () => {
  await withScene(async (scene) => {
    const { send, sendToOther, refresh, sendMatching, provider, consumer } = scene;
    const path = `/allocations/${consumer}`;
    const before = await tagOf(send, path);
    await refresh();
    const added = randomUUID();
    await makeProvider(sendToOther, added, { VCPU: { total: 8 } });
    const more = newClaim({ [provider]: { CUSTOM_HELD: 1, VCPU: 1 }, [added]: { VCPU: 1 } });
    accepted(await sendToOther('PUT', path, { ...more, consumer_generation: 1 }));
    const claim = { ...newClaim({ [provider]: { VCPU: 2 } }), consumer_generation: 2 };
    assert.equal(await sendMatching(before, 'PUT', path, claim), 412);
    assert.equal(await sendMatching(await tagOf(sendToOther, path), 'PUT', path, claim), 204);
  });
});
