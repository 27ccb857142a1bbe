/* Where the grid has its groups and cells, without a browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Group } from '../../console/fleet/grouping.ts';
import {
  boxOf,
  type Camera,
  cellAt,
  clamped,
  layOut,
  neighbour,
  type Scene,
  sceneAt,
  zoomed,
} from '../../console/fleet/layout.ts';
import { commonClass, openTrees } from '../../console/fleet/trees.ts';
import { amountText, exactText } from '../../console/text.ts';

/** So many groups of so many trees. */
const groupsOf = (count: number, size: number): readonly Group[] =>
  Array.from({ length: count }, (_, index) => ({
    key: `group-${index}`,
    label: `rack${index}`,
    sums: new Map(),
    trees: Array.from({ length: size }, (_, number) => treeOf(`host-${index}-${number}`)),
  }));

const provider = (name: string, inventories: Readonly<Record<string, number>>, more: object = {}) => ({
  uuid: name,
  name,
  generation: 0,
  parent_provider_uuid: null,
  root_provider_uuid: name,
  usages: {},
  traits: [],
  aggregates: [],
  ...more,
  inventories: Object.fromEntries(
    Object.entries(inventories).map(([resourceClass, total]) => [
      resourceClass,
      { total, reserved: 0, min_unit: 1, max_unit: total, step_size: 1, allocation_ratio: 1 },
    ]),
  ),
});

const treesOf = (...providers: readonly ReturnType<typeof provider>[]) =>
  openTrees()({ providers: new Map(providers.map((each) => [each.uuid, each])) });

const treeOf = (name: string) => treesOf(provider(name, { VCPU: 8 }))[0] ?? assert.fail();

const overlaps = ({ blocks }: Scene): number =>
  blocks.filter((a, index) =>
    blocks
      .slice(index + 1)
      .some((b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height),
  ).length;

for (const [groups, size, width, height] of [
  [150, 20, 960, 650],
  [313, 32, 960, 650],
  [313, 32, 1880, 1150],
  [1000, 10, 960, 650],
] as const) {
  test(`${groups} groups of ${size} fit into ${width} x ${height} pixels, each large enough to point at`, () => {
    const layout = layOut(groupsOf(groups, size), width, height);
    const scene = sceneAt(layout, layout.fit);
    assert.equal(scene.blocks.length, groups);
    assert.ok(scene.height <= height && scene.width <= width, `${scene.width} x ${scene.height}`);
    assert.equal(overlaps(scene), 0);
    if (!scene.isCollapsed) assert.ok(scene.scale >= 4, `cells of ${scene.scale} pixels`);
    for (const block of scene.blocks) assert.ok(block.width * block.height >= 150, `${block.width} x ${block.height}`);
  });
}

test('few groups keep their cells, and one group has no heading', () => {
  const few = layOut(groupsOf(2, 25_000), 960, 650);
  assert.equal(sceneAt(few, few.fit).isCollapsed, false);
  const [group] = groupsOf(1, 100);
  const alone = layOut([{ ...(group ?? assert.fail()), key: '' }], 960, 650);
  assert.equal(sceneAt(alone, alone.fit).blocks[0]?.headingPx, 0);
});

test('headings have one size at every scale at which cells are shown', () => {
  const layout = layOut(groupsOf(313, 32), 960, 650);
  for (const scale of [4, 10, 60, 220]) {
    const scene = sceneAt(layout, scale);
    assert.equal(scene.isCollapsed, false);
    assert.equal(overlaps(scene), 0);
    for (const { headingPx } of scene.blocks) assert.equal(headingPx, 22);
  }
});

test('zooming keeps the cell under the pointer, from all groups to large cells and back', () => {
  const layout = layOut(groupsOf(313, 32), 960, 650);
  let scene = sceneAt(layout, 30);
  const cell = 5000;
  const at = boxOf(scene, cell);
  let camera: Camera = { x: at.x + 12 - 300, y: at.y + 17 - 200, scale: 30 };
  assert.equal(cellAt(scene, camera.x + 300, camera.y + 200), cell);
  for (const scale of [60, 180, 220, 90, 30]) {
    const next = sceneAt(layout, scale);
    camera = zoomed(camera, scene, next, 300, 200);
    scene = next;
    assert.equal(cellAt(scene, camera.x + 300, camera.y + 200), cell, `at ${scale}`);
  }
  // Where groups are cells, its group is there.
  const small = sceneAt(layout, layout.fit);
  assert.equal(small.isCollapsed, true);
  const far = zoomed(camera, scene, small, 300, 200);
  assert.equal(cellAt(small, far.x + 300, far.y + 200), scene.blocks.findLast(({ first }) => first <= cell)?.first);
  const inside = clamped({ x: -50, y: 1e6, scale: 30 }, scene, 960, 650);
  assert.deepEqual(inside, { x: 0, y: scene.height - 650, scale: 30 });
});

test('arrow keys reach every cell, and every group where groups are cells', () => {
  const layout = layOut(groupsOf(30, 3), 960, 650);
  for (const scale of [layout.fit, 2]) {
    const scene = sceneAt(layout, scale);
    const seen = new Set<number>([0]);
    for (let cell = 0; ; ) {
      const next = neighbour(scene, layout.cells, cell, 'right');
      if (next === cell) break;
      seen.add(next);
      cell = next;
    }
    assert.equal(seen.size, scene.isCollapsed ? 30 : 90);
    const below = neighbour(scene, layout.cells, 0, 'down');
    assert.ok(boxOf(scene, below).y > boxOf(scene, 0).y);
    assert.equal(boxOf(scene, neighbour(scene, layout.cells, below, 'up')).y, boxOf(scene, 0).y);
  }
});

test('the fleet opens with the class that most hosts have, whatever pools there are', () => {
  const shared = { traits: ['MISC_SHARES_VIA_AGGREGATE'] };
  const licences = ['a', 'b', 'c'].map((name) => provider(name, { CUSTOM_LICENCE: 5 }, shared));
  const hosts = ['h1', 'h2'].map((name) => provider(name, { CUSTOM_A: 1, PGPU: 4 }));
  const other = provider('h3', { DISK_GB: 10 });
  const trees = treesOf(...licences, ...hosts, other);
  assert.deepEqual(
    trees.filter(({ isPool }) => isPool).map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  assert.equal(commonClass(trees), 'PGPU');
  assert.equal(commonClass(treesOf(...licences)), 'CUSTOM_LICENCE');
  assert.equal(commonClass([]), 'VCPU');
  // Of two classes without a name of their own the one that is used more.
  const used = provider('h4', { CUSTOM_A: 10, CUSTOM_B: 10 }, { usages: { CUSTOM_B: 9 } });
  assert.equal(commonClass(treesOf(used)), 'CUSTOM_B');
});

test('a search finds a tree by a part of any name or UUID in it', () => {
  const child = provider('gpu-7', { PGPU: 1 }, { root_provider_uuid: 'Host-1', parent_provider_uuid: 'Host-1' });
  const [tree] = treesOf(provider('Host-1', { VCPU: 1 }), child);
  assert.ok(tree?.searched.includes('host-1') && tree.searched.includes('gpu-7'));
});

test('amounts have units where the class names one, and the exact number', () => {
  for (const [resourceClass, amount, text] of [
    ['VCPU', 1_240_000, '1,240,000'],
    ['MEMORY_MB', 512, '512 MiB'],
    ['MEMORY_MB', 385_024_000, '367 TiB'],
    ['MEMORY_MB', 1536, '1.5 GiB'],
    ['DISK_GB', 40, '40 GiB'],
    ['DISK_GB', 2048, '2 TiB'],
    ['CUSTOM_CACHE_KB', 2048, '2 MiB'],
    ['NET_BW_EGR_KILOBIT_PER_SEC', 10_000_000, '10 Gbit/s'],
    ['MEMORY_MB', 0, '0 MiB'],
    // A limit on the number of consumers of a type.
    ['consumers of type CI_GB', 3000, '3,000'],
  ] as const) {
    assert.equal(amountText(resourceClass, amount), text, `${amount} ${resourceClass}`);
  }
  assert.equal(exactText('MEMORY_MB', 385_024_001), '385,024,001 MEMORY_MB');
});
