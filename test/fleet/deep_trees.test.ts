import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { aboveOf, type Provider, subtreeOf, treeOf } from '../../src/fleet/model/provider.ts';
import { anyChange } from '../candidates/random_change.ts';
import { anyTopology } from '../candidates/random_topology.ts';
import { rowsOf } from '../candidates/topology.ts';
import { changeFleet } from './change_fleet.ts';
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

/** Whether a provider is another one or below it, by following parents. */
const isBelow = (provider: Provider | undefined, other: Provider): boolean =>
  provider !== undefined && (provider === other || isBelow(aboveOf(provider), other));

test('a subtree has the provider and all below it, parents first, whatever has changed', () => {
  let large = 0;
  fc.assert(
    fc.property(anyTopology, fc.array(anyChange, { maxLength: 10 }), (topology, changes) => {
      let rows = rowsOf(topology);
      const living = createFleet(rows);
      for (const change of changes) rows = changeFleet(living, rows, change);
      for (const provider of living.fleet.byId.values()) {
        const subtree = subtreeOf(provider);
        const expected = treeOf(provider.root).filter((each) => isBelow(each, provider));
        assert.deepEqual(new Set(subtree), new Set(expected));
        assert.equal(subtree.length, expected.length);
        for (const [index, { parent }] of subtree.entries()) {
          assert.ok(index === 0 || (parent !== undefined && subtree.indexOf(parent) < index));
        }
        if (subtree.length > 1 && provider.root !== provider) large += 1;
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(large > 100, `${large} below a root had providers below them`);
});
