/** A claim by query, or a new provider, is judged on a fleet that is a moment old: another process has just changed what it relies on. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { accepted, at, makeProvider, newClaim, type Send } from '../support/requests.ts';
import { type TwoServices, withTwoServices } from '../support/two_services.ts';
import { errorOf, placed, providersOf } from './placed.ts';

/** A root without anything, with a child that has VCPU. */
async function makeTree(send: Send): Promise<{ readonly root: string; readonly child: string }> {
  const tree = { root: randomUUID(), child: randomUUID() };
  accepted(await send('POST', '/resource_providers', { uuid: tree.root, name: tree.root }));
  await makeProvider(send, tree.child, { VCPU: { total: 8 } }, { parent_provider_uuid: tree.root });
  return tree;
}

const move = (send: Send, uuid: string, parent: string) =>
  send('PUT', `/resource_providers/${uuid}`, { name: uuid, parent_provider_uuid: parent });

const claim = (send: Send, uuid: string, query: string, generation: number | null = null) =>
  send('PUT', `/allocations/${uuid}`, placed(query, generation));

type Trees = { readonly from: string; readonly held: string; readonly to: string };

/**
 * Calls back with two trees, of which the other process moves the one below the root of the other one: for the first process
 * they are two.
 */
async function afterMove(
  prepare: (both: TwoServices, trees: Trees) => Promise<unknown>,
  use: (both: TwoServices, trees: Trees) => Promise<void>,
): Promise<void> {
  await withTwoServices(async (both) => {
    const { sendToOther } = both;
    const [from, to] = [await makeTree(sendToOther), await makeTree(sendToOther)];
    const trees = { from: from.root, held: from.child, to: to.root };
    await prepare(both, trees);
    await both.refresh();
    accepted(await move(sendToOther, trees.from, trees.to));
    await use(both, trees);
  });
}

test('a consumer stays out of a tree below which another process has moved what its neighbour has', async () => {
  const neighbour = randomUUID();
  const prepare = async ({ sendToOther }: TwoServices, { held }: Trees) =>
    accepted(await sendToOther('PUT', `/allocations/${neighbour}`, newClaim({ [held]: { VCPU: 1 } })));
  await afterMove(prepare, async ({ send }, { to }) => {
    const answer = await claim(send, randomUUID(), `resources=VCPU:1&in_tree=${to}&apart_from=${neighbour}`);
    assert.equal(errorOf(answer).code, 'placement.no_candidates', answer.text);
  });
});

test('a consumer stays out of that tree also where its neighbour is a plain consumer of the same claim', async () => {
  await afterMove(
    async () => {},
    async ({ send }, { held, to }) => {
      const [plain, asking] = [randomUUID(), randomUUID()];
      const answer = await send('POST', '/allocations', {
        [plain]: newClaim({ [held]: { VCPU: 1 } }),
        [asking]: placed(`resources=VCPU:1&in_tree=${to}&apart_from=${plain}`),
      });
      assert.equal(errorOf(answer).code, 'placement.no_candidates', answer.text);
    },
  );
});

test('a claim is judged right on a stale fleet where its consumer is to leave its tree', async () => {
  const uuid = randomUUID();
  const prepare = async ({ sendToOther }: TwoServices, { held }: Trees) =>
    accepted(await sendToOther('PUT', `/allocations/${uuid}`, newClaim({ [held]: { VCPU: 1 } })));
  await afterMove(prepare, async ({ send }, { to }) => {
    const answer = await claim(send, uuid, `resources=VCPU:1&in_tree=${to}&apart_from=${uuid}`, 1);
    assert.equal(errorOf(answer).code, 'placement.no_candidates', answer.text);
  });
});

test('a consumer is not placed with a neighbour that another process has moved to another tree', async () => {
  const neighbour = randomUUID();
  await withTwoServices(async ({ send, sendToOther, refresh }) => {
    const [{ root, child }, other] = [await makeTree(sendToOther), await makeTree(sendToOther)];
    const between = randomUUID();
    await makeProvider(sendToOther, between, {}, { parent_provider_uuid: root });
    const held = randomUUID();
    await makeProvider(sendToOther, held, { VGPU: { total: 1 } }, { parent_provider_uuid: between });
    accepted(await sendToOther('PUT', `/allocations/${neighbour}`, newClaim({ [held]: { VGPU: 1 } })));
    await refresh();
    accepted(await move(sendToOther, between, other.root));
    const query = `resources=VCPU:1&in_tree=${root}&with=${neighbour}`;
    const answer = await claim(send, randomUUID(), query);
    assert.equal(errorOf(answer).code, 'placement.no_candidates', answer.text);
    const elsewhere = accepted(await claim(send, randomUUID(), `resources=VCPU:1&with=${neighbour}`));
    assert.deepEqual(providersOf(elsewhere.json), [other.child]);
    assert.notEqual(child, other.child);
  });
});

for (const [name, query] of Object.entries({
  'the only tree': (uuid: string) => `resources=VCPU:1&in_tree=${uuid}`,
  'the tree of a group': (uuid: string) => `resources_A=VCPU:1&in_tree_A=${uuid}`,
})) {
  test(`a provider without anything that another process deletes is no longer ${name}`, async () => {
    await withTwoServices(async ({ send, sendToOther, refresh }) => {
      const { root } = await makeTree(sendToOther);
      const leaf = randomUUID();
      accepted(
        await sendToOther('POST', '/resource_providers', { uuid: leaf, name: leaf, parent_provider_uuid: root }),
      );
      await refresh();
      accepted(await claim(send, randomUUID(), query(leaf)));
      accepted(await sendToOther('DELETE', `/resource_providers/${leaf}`));
      const gone = await claim(send, randomUUID(), query(leaf));
      assert.equal(errorOf(gone).code, 'placement.no_candidates', gone.text);
    });
  });
}

/** What a query names besides, made before and deleted by the other process. Each names something that no provider has. */
const names: Readonly<Record<string, readonly [path: string, query: string]>> = {
  'a trait that must not be there': ['/traits/CUSTOM_BAD', 'required=!CUSTOM_BAD'],
  'a trait that the root must not have': ['/traits/CUSTOM_BAD', 'root_required=!CUSTOM_BAD'],
  'a trait that comes first': ['/traits/CUSTOM_BAD', 'order=prefer:CUSTOM_BAD'],
  'a class of the order': ['/resource_classes/CUSTOM_OLD', 'order=free:CUSTOM_OLD'],
};

for (const [name, [path, part]] of Object.entries(names)) {
  test(`a query with a name that another process has deleted is refused: ${name}`, async () => {
    await withTwoServices(async ({ send, sendToOther, refresh }) => {
      await makeTree(sendToOther);
      accepted(await sendToOther('PUT', path));
      await refresh();
      const query = `resources=VCPU:1&${part}`;
      accepted(await claim(send, randomUUID(), query));
      accepted(await sendToOther('DELETE', path));
      const refused = await claim(send, randomUUID(), query);
      assert.equal(refused.status, 400, refused.text);
    });
  });
}

test('a new provider is shown in the tree to which another process has moved its parent', async () => {
  await afterMove(
    async () => {},
    async ({ send }, { from, to }) => {
      const body = { uuid: randomUUID(), name: 'new', parent_provider_uuid: from };
      const { json } = accepted(await send('POST', '/resource_providers', body));
      assert.equal(at(json, 'root_provider_uuid'), to);
    },
  );
});
