/** Another program changes a tree, after the fleet was read and before a consumer is placed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { anyEngine } from '../support/engines.ts';
import { accepted, makeProvider, type Send } from '../support/requests.ts';
import { errorOf, placed, providersOf, withHosts } from './placed.ts';

const [trait, otherTrait, aggregate] = ['CUSTOM_GOOD', 'CUSTOM_BAD', randomUUID()];

/** What each query relies on, and the statement of another program that removes it. None of them raises a generation. */
const changes: readonly (readonly [name: string, query: string, statement: (uuids: Tree) => string])[] = [
  ['a trait of the root goes', `root_required=${trait}`, () => 'delete from resource_provider_traits'],
  [
    'a forbidden trait of the root comes',
    `root_required=!${otherTrait}`,
    ({ root }) => `insert into resource_provider_traits (resource_provider_id, trait_id)
      select p.id, t.id from resource_providers p, traits t where p.uuid = '${root}' and t.name = '${otherTrait}'`,
  ],
  ['the root leaves an aggregate', `member_of=${aggregate}`, () => 'delete from resource_provider_aggregates'],
  [
    'the tree is moved below another root',
    `root_required=${trait}`,
    ({
      root,
      other,
    }) => `update resource_providers set parent_provider_id = (select id from resource_providers where uuid = '${other}'),
      root_provider_id = (select id from resource_providers where uuid = '${other}') where uuid = '${root}'`,
  ],
  [
    'the device is moved to another tree',
    'in_tree=ROOT',
    ({
      device,
      other,
    }) => `update resource_providers set parent_provider_id = (select id from resource_providers where uuid = '${other}'),
      root_provider_id = (select id from resource_providers where uuid = '${other}') where uuid = '${device}'`,
  ],
  ['the inventory shrinks', 'root_required=!CUSTOM_BAD', () => 'update inventories set total = 1, max_unit = 1'],
];

type Tree = { readonly root: string; readonly device: string; readonly other: string };

/** A tree whose root has nothing but a trait and an aggregate, and a device below it; and a root that has nothing. */
async function makeTree(send: Send): Promise<Tree> {
  const tree = { root: randomUUID(), device: randomUUID(), other: randomUUID() };
  for (const name of [trait, otherTrait]) accepted(await send('PUT', `/traits/${name}`));
  for (const uuid of [tree.root, tree.other]) accepted(await send('POST', '/resource_providers', { uuid, name: uuid }));
  await makeProvider(send, tree.device, { VGPU: { total: 4 } }, { parent_provider_uuid: tree.root });
  const traits = { resource_provider_generation: 0, traits: [trait] };
  accepted(await send('PUT', `/resource_providers/${tree.root}/traits`, traits));
  const aggregates = { resource_provider_generation: 1, aggregates: [aggregate] };
  accepted(await send('PUT', `/resource_providers/${tree.root}/aggregates`, aggregates));
  return tree;
}

for (const [name, condition, statement] of changes) {
  test(`no consumer is placed by data that has changed: ${name}`, async () => {
    await withHosts(anyEngine, 0, async (send, _, { database }) => {
      const tree = await makeTree(send);
      const query = `resources=VGPU:2&${condition.replace('ROOT', tree.root)}`;
      const first = accepted(await send('PUT', `/allocations/${randomUUID()}`, placed(query)));
      assert.deepEqual(providersOf(first.json), [tree.device]);
      await sql.raw(statement(tree)).execute(database.kysely);
      const second = await send('PUT', `/allocations/${randomUUID()}`, placed(query));
      assert.equal(errorOf(second).code, 'placement.no_candidates', second.text);
    });
  });
}
