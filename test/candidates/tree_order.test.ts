/** The order of trees by `order`, against a plain sort over all trees of the rows from which the fleet is made. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { showEffects } from '../../src/fleet/model/own_writes.ts';
import { ApiError } from '../../src/request/errors.ts';
import type { CandidateRequest, OrderKey } from '../../src/search/request.ts';
import { changeFleet } from '../fleet/change_fleet.ts';
import { type AllRows, createFleet } from '../fleet/made_up_fleet.ts';
import { search } from '../support/search.ts';
import { candidateKey } from './candidate_key.ts';
import { groupOf, requestOf } from './plain_request.ts';
import { anyChange, changes, noChanges } from './random_change.ts';
import { anyRequest } from './random_request.ts';
import { anyTopology } from './random_topology.ts';
import { classNames, fleetOf, type Node, nodeAt, rowsOf, type Stock, stockOf, traitNames } from './topology.ts';

const anyKey: fc.Arbitrary<OrderKey> = fc.oneof(
  fc.record({
    kind: fc.constant('free' as const),
    className: fc.constantFrom(...classNames.slice(0, 3)),
    mostFirst: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('prefer' as const), traitName: fc.constantFrom(...traitNames.slice(0, 3)) }),
);
const anyOrder = fc.array(anyKey, { minLength: 1, maxLength: 3 });

/** The value of a key for some providers together, by the letter of the contract. */
function naiveValue(rows: AllRows, key: OrderKey, ids: readonly number[]): number {
  if (key.kind === 'random') return 0;
  if (key.kind === 'prefer') {
    const trait = rows.traitNames.find(({ name }) => name === key.traitName)?.id;
    return rows.traits.some((row) => row.trait === trait && ids.includes(row.provider)) ? 0 : 1;
  }
  const classId = rows.classNames.find(({ name }) => name === key.className)?.id;
  const free = rows.inventories
    .filter((row) => row.class === classId && ids.includes(row.provider))
    .map(({ total, reserved, allocation_ratio, used }) => {
      return Math.max(0, Math.trunc((total - reserved) * Number(allocation_ratio)) - used);
    })
    .reduce((sum, each) => sum + each, 0);
  return key.mostFirst ? -free : free;
}

/** Compares lists of numbers, the first ones first. */
const compareLists = (one: readonly number[], other: readonly number[]): number =>
  one.map((value, rank) => value - (other[rank] ?? 0)).find((difference) => difference !== 0) ?? 0;

/** Sorts by what an item is worth; equal items stay as they are. */
const sortedBy = <Item>(items: readonly Item[], valuesOf: (item: Item) => readonly number[]): readonly Item[] =>
  items
    .map((item) => ({ item, values: valuesOf(item) }))
    .sort((one, other) => compareLists(one.values, other.values))
    .map(({ item }) => item);

function treeIds(rows: AllRows, root: number): readonly number[] {
  const ids = [root];
  for (const id of ids) for (const row of rows.providers) if (row.parent === id) ids.push(row.id);
  return ids;
}

/** The roots of a fleet, sorted plainly by what the rows say. */
const sortedRoots = (rows: AllRows, { roots }: Pick<Fleet, 'roots'>, order: readonly OrderKey[]) =>
  sortedBy(roots, ({ id }) => {
    const ids = treeIds(rows, id);
    return order.map((key) => naiveValue(rows, key, ids));
  });

const steady = { strategy: 'depth-first', randomize: false, limited: false } as const;

/** Of the tree of one root only. */
const onlyAt = ({ roots }: Fleet, id: number) => {
  const only = new Set(roots.filter((root) => root.id === id));
  return { ...steady, allowed: { only, not: new Set<never>() } };
};

const keysOf = (fleet: Fleet, request: CandidateRequest, options: Parameters<typeof search>[2] = steady): string[] =>
  Array.from(search(fleet, request, options), (candidate) => candidateKey(fleet, candidate));

/**
 * The candidates of a request by order: for each tree of a new fleet, the trees sorted plainly, those that no tree before it has.
 * Within a tree they are sorted by their text, since providers that are equal by all keys may come in any order.
 */
function expectedTrees(rows: AllRows, fleet: Fleet, request: CandidateRequest): readonly (readonly string[])[] {
  const fresh = createFleet(rows).fleet;
  keysOf(fresh, request); // throws what is to be thrown, also where there are no trees
  const seen = new Set<string>();
  return sortedRoots(rows, fleet, request.order).map(({ id }) => {
    const added = keysOf(fresh, request, onlyAt(fresh, id)).filter((key) => !seen.has(key));
    for (const key of added) seen.add(key);
    return added.sort();
  });
}

/** Cuts candidates into pieces as long as those that are expected, each sorted. What is left over is the last piece. */
function cutLike(trees: readonly (readonly string[])[], keys: readonly string[]): readonly (readonly string[])[] {
  let start = 0;
  const pieces = trees.map(({ length }) => {
    start += length;
    return keys.slice(start - length, start).sort();
  });
  return start < keys.length ? [...pieces, keys.slice(start)] : pieces;
}

function found<Result>(search: () => Result): Result | string {
  try {
    return search();
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

test('candidates come in the order of their trees, whatever changed before', () => {
  let several = 0;
  const requests = fc.array(fc.tuple(anyRequest, anyOrder), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(
      anyTopology,
      requests,
      fc.array(anyChange, { minLength: 1, maxLength: 8 }),
      (topology, wanted, list) => {
        const ordered = [
          ...wanted.map(([request, order]) => ({ ...request, order })),
          ...wanted.map(([, order]) => ({ ...requestOf([groupOf('', { VCPU: 1 })]), order })),
        ];
        let rows = rowsOf(topology);
        const living = createFleet(rows);
        const { fleet } = living;
        for (const request of ordered) keysOf(fleet, request);
        for (const change of list) {
          rows = changeFleet(living, rows, change);
          for (const request of ordered) {
            const expected = found(() => expectedTrees(rows, fleet, request));
            const actual = found(() => keysOf(fleet, request));
            if (typeof expected === 'string' || typeof actual === 'string') {
              assert.equal(actual, expected, change.kind);
              continue;
            }
            assert.deepEqual(cutLike(expected, actual), expected, change.kind);
            if (expected.filter(({ length }) => length > 0).length > 1) several += 1;
            const [first] = keysOf(fleet, request, { ...steady, limited: true });
            assert.equal(first, actual[0]);
          }
        }
      },
    ),
    { numRuns: 200 },
  );
  assert.ok(several > 200, `${several} answers`);
});

test('a tree that gets room is found among trees that had none', () => {
  const full = { stock: { VCPU: { ...stockOf(8), used: 8 }, MEMORY_MB: stockOf(8) } };
  const fleet = fleetOf([nodeAt(0, full), nodeAt(1, full), nodeAt(2, full)]);
  const order = [{ kind: 'free', className: 'MEMORY_MB', mostFirst: true }] as const;
  const request = { ...requestOf([groupOf('', { VCPU: 8 })]), order };
  assert.deepEqual(keysOf(fleet, request), []);
  showEffects(fleet, { effects: [{ providerId: 2, bump: 1, used: [{ classId: 1, delta: -8 }] }] }, 1);
  assert.equal(keysOf(fleet, request).length, 1);
});

/** The same where nothing is shared, so that all of a candidate is in one tree. */
function expectedUnshared(rows: AllRows, { roots }: Fleet, request: CandidateRequest): readonly string[] {
  const fresh = createFleet(rows).fleet;
  const byRoot = Map.groupBy(search(fresh, request, steady), ([choice]) => choice?.providers[0]?.root.id ?? 0);
  const found = roots.filter(({ id }) => byRoot.has(id));
  return sortedRoots(rows, { roots: found }, request.order).flatMap(({ id }) =>
    (byRoot.get(id) ?? []).map((candidate) => candidateKey(fresh, candidate)),
  );
}

/** Many trees, of which few have much, one in fifty has a rare trait, and many are alike. */
function manyTrees(random: (most: number) => number): readonly Node[] {
  const nodes: Node[] = [];
  const stock = (): Stock => ({ ...stockOf(8), used: Math.max(0, 8 - random(12)) });
  for (let tree = 0; tree < 400; tree++) {
    const root = nodes.length;
    const traits = [
      ...(random(50) === 0 ? ['CUSTOM_RARE' as const] : []),
      ...(random(2) === 0 ? ['HW_CPU_X86_AVX2' as const] : []),
    ];
    nodes.push(
      nodeAt(root, {
        traits,
        stock: { VCPU: stock(), MEMORY_MB: stock(), ...(random(9) === 0 ? { DISK_GB: stock() } : {}) },
      }),
    );
    for (let child = random(3); child > 0; child--) {
      nodes.push(nodeAt(nodes.length, { parent: root, stock: { VCPU: stock() } }));
    }
  }
  return nodes;
}

test('among many trees the search passes exactly those that cannot fit', () => {
  const requests = [
    requestOf([groupOf('', { VCPU: 6, MEMORY_MB: 7 })]),
    requestOf([groupOf('', { VCPU: 2 }), groupOf('_A', { VCPU: 8 }), groupOf('_B', { VCPU: 7 })]),
    requestOf([groupOf('', { DISK_GB: 5 })]),
    requestOf([groupOf('', { VCPU: 1 }, { traits: { required: [['CUSTOM_RARE']], forbidden: [] } })]),
  ];
  let answers = 0;
  fc.assert(
    fc.property(
      fc.infiniteStream(fc.nat(1_000_000)),
      fc.array(anyOrder, { minLength: 3, maxLength: 10 }),
      fc.array(
        fc.array(
          fc.record({
            kind: fc.constantFrom(...(['claim', 'ownClaim', 'inventory', 'traits', 'move', 'remove', 'add'] as const)),
            at: fc.nat(1000),
            what: fc.nat(20),
          }),
          { maxLength: 200 },
        ),
        { minLength: 1, maxLength: 4 },
      ),
      (stream, orders, rounds) => {
        const random = (most: number): number => (stream.next().value ?? 0) % most;
        let rows = rowsOf(manyTrees(random));
        const living = createFleet(rows);
        const { fleet } = living;
        for (const list of [[], ...rounds]) {
          for (const change of list) rows = changeFleet(living, rows, change);
          for (const [number, order] of orders.entries()) {
            const request = requests[number % requests.length];
            if (request === undefined) return;
            const expected = expectedUnshared(rows, fleet, { ...request, order });
            assert.deepEqual(keysOf(fleet, { ...request, order }), expected);
            if (expected.length > 1) answers += 1;
          }
        }
      },
    ),
    { numRuns: 8 },
  );
  assert.ok(answers > 50, `${answers} answers`);
});

test('a root that takes the index of an equal root does not hide that the other one is a root no more', () => {
  const stock = { VCPU: stockOf(8) };
  let rows = rowsOf(Array.from({ length: 4 }, (_, number) => nodeAt(number, { stock })));
  const { fleet, apply } = createFleet(rows);
  const order = [{ kind: 'prefer' as const, traitName: 'CUSTOM_RARE' }];
  const request = { ...requestOf([groupOf('', { VCPU: 1 })]), order };
  const [top = 0, moved = 0, , last = 0] = fleet.roots.map(({ id }) => id);
  assert.equal(keysOf(fleet, request).length, 4);
  const belowTop = (id: number) => ({
    ...rows,
    providers: rows.providers.map((row) => (row.id === id ? { ...row, parent: top } : row)),
  });
  // The claim notes the last root before the move, which lets it take the index of the moved one.
  const [claimed, reported] = changes.claim(rows, last, 1);
  apply(reported);
  rows = claimed;
  rows = belowTop(moved);
  apply({
    ...noChanges,
    whole: [moved],
    providers: rows.providers.filter(({ id }) => id === moved),
    inventories: rows.inventories.filter(({ provider }) => provider === moved),
  });
  assert.deepEqual(keysOf(fleet, request).toSorted(), expectedUnshared(rows, fleet, request).toSorted());
  assert.equal(new Set(keysOf(fleet, request)).size, 4);
});

test('a group takes from the first of its providers by the same keys', () => {
  let compared = 0;
  fc.assert(
    fc.property(anyTopology, anyOrder, (topology, order) => {
      const rows = rowsOf(topology);
      const { fleet } = createFleet(rows);
      const request = { ...requestOf([groupOf('_A', { VCPU: 1 })]), order };
      for (const root of fleet.roots) {
        const ids = Array.from(
          search(fleet, request, onlyAt(fleet, root.id)),
          ([choice]) => choice?.providers[0]?.id ?? 0,
        );
        assert.deepEqual(
          ids,
          sortedBy(ids, (id) => order.map((key) => naiveValue(rows, key, [id]))),
        );
        if (ids.length > 1) compared += 1;
      }
    }),
    { numRuns: 1000 },
  );
  assert.ok(compared > 300, `${compared} trees`);
});

test('equal trees come in random order if the query requests it', () => {
  const topology = [...Array(8).keys()].map((number) =>
    nodeAt(number, { stock: { VCPU: stockOf(number < 6 ? 4 : 8) }, traits: number % 2 === 0 ? ['CUSTOM_FAST'] : [] }),
  );
  const fleet = fleetOf(topology);
  const firsts = (order: readonly OrderKey[], randomize: boolean) =>
    new Set(
      Array.from({ length: 300 }, () => {
        const request = { ...requestOf([groupOf('', { VCPU: 1 })]), order };
        for (const [choice] of search(fleet, request, { ...steady, randomize, limited: true })) {
          return (choice?.providers[0]?.id ?? 0) - 1;
        }
        return undefined;
      }),
    );
  const least = { kind: 'free', className: 'VCPU', mostFirst: false } as const;
  const fast = { kind: 'prefer', traitName: 'CUSTOM_FAST' } as const;
  assert.deepEqual(firsts([{ kind: 'random' }], false), new Set([...topology.keys()]), 'random alone');
  assert.deepEqual([...firsts([least, fast, { kind: 'random' }], false)].sort(), [0, 2, 4], 'random at the end');
  assert.deepEqual([...firsts([least, { kind: 'random' }, fast], false)].sort(), [0, 1, 2, 3, 4, 5], 'random before');
  assert.deepEqual([...firsts([least, fast], true)].sort(), [0, 2, 4], 'as configured');
  assert.deepEqual([...firsts([least, fast], false)], [0], 'not random');
});

test('a tree whose one provider gets more room is found, though the tree has as much as before', () => {
  const treeOf = (root: number, amounts: readonly [number, number]) => [
    nodeAt(root),
    nodeAt(root + 1, { parent: root, stock: { VCPU: stockOf(amounts[0]) } }),
    nodeAt(root + 2, { parent: root, stock: { VCPU: stockOf(amounts[1]) } }),
  ];
  const rowsWith = (amounts: readonly [number, number]) => rowsOf([...treeOf(0, amounts), ...treeOf(3, [2, 2])]);
  const order = [{ kind: 'free', className: 'VCPU', mostFirst: true }] as const;
  const request = { ...requestOf([groupOf('', { VCPU: 3 })]), order };
  const { fleet, apply } = createFleet(rowsWith([2, 2]));
  const find = () => keysOf(fleet, request, { ...steady, limited: true });
  assert.deepEqual(find(), []);
  const rows = rowsWith([1, 3]);
  const changed = rows.providers.map(({ id }) => id);
  apply({ ...noChanges, ...rows, whole: changed, traitNames: null, classNames: null });
  assert.equal(find().length, 1);
});
