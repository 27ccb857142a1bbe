import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subtreeOf, treeOf } from '../../src/fleet/model/provider.ts';
import { createFleet } from './made_up_fleet.ts';

const depth = 50_000;

test('a tree may have any depth, with each provider below the provider before it', () => {
  const { fleet } = createFleet({
    providers: Array.from({ length: depth }, (_, index) => ({
      id: index + 1,
      uuid: `uuid ${index}`,
      name: `name ${index}`,
      generation: 0,
      parent: index === 0 ? null : index,
      created: null,
      updated: null,
    })),
    inventories: [],
    traits: [],
    aggregates: [],
    traitNames: [],
    classNames: [],
  });
  const [root] = fleet.roots;
  assert.ok(root !== undefined && fleet.roots.length === 1);
  assert.equal(treeOf(root).length, depth);
  assert.equal(fleet.byId.get(depth)?.root, root);
  assert.deepEqual(
    subtreeOf(root).map(({ id }) => id),
    treeOf(root).map(({ id }) => id),
  );
});
