/** The lists of how much trees have room for, against plain sums over the rows from which the fleet is made. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { pageOf } from '../../db/fleet/rows.ts';
import type { LivingFleet } from '../../src/fleet/model/fleet.ts';
import { showEffects } from '../../src/fleet/model/own_writes.ts';
import type { Demand } from '../../src/fleet/model/tree_room.ts';
import { anyTopology } from '../candidates/random_topology.ts';
import { classNames, fleetOf, nodeAt, rowsOf, type Stock, stockOf } from '../candidates/topology.ts';
import { changeFleet } from './change_fleet.ts';
import { type AllRows, createFleet } from './made_up_fleet.ts';

/** The amounts that fit into each provider by itself, by the id of its root: one of each class, the largest. */
function largestByRoot(rows: AllRows, classId: number): ReadonlyMap<number, readonly number[]> {
  const parents = new Map(rows.providers.map(({ id, parent }) => [id, parent]));
  const rootOf = (id: number): number => {
    const parent = parents.get(id) ?? null;
    return parent === null ? id : rootOf(parent);
  };
  const ofRoots = new Map<number, number[]>(rows.providers.map(({ id }) => [rootOf(id), []]));
  for (const row of rows.inventories) {
    if (row.class !== classId) continue;
    const capacity = (row.total - row.reserved) * Number(row.allocation_ratio);
    let largest = 0;
    for (let amount = 1; amount <= row.max_unit && row.used + amount <= capacity; amount++) largest = amount;
    ofRoots.get(rootOf(row.provider))?.push(largest);
  }
  return ofRoots;
}

function plainlyMeeting(rows: AllRows, demands: readonly Demand[]): readonly number[] {
  const byClass = demands.map((demand) => ({ demand, largest: largestByRoot(rows, demand.classId) }));
  return rows.providers
    .filter(({ parent }) => parent === null)
    .map(({ id }) => id)
    .filter((id) =>
      byClass.every(({ demand: { ofOne, total }, largest }) => {
        const amounts = largest.get(id) ?? [];
        return Math.max(0, ...amounts) >= ofOne && amounts.reduce((sum, each) => sum + each, 0) >= total;
      }),
    )
    .sort((one, other) => one - other);
}

/** Compares the lists with the rows. @returns how many trees have room */
function check({ fleet }: LivingFleet, rows: AllRows, demands: readonly Demand[], what?: string): number {
  const expected = plainlyMeeting(rows, demands);
  const ids = fleet.treeRoom.meeting(demands, expected.length)?.map(({ id }) => id);
  assert.deepEqual(
    ids?.sort((one, other) => one - other),
    expected,
    what,
  );
  if (expected.length > 0) assert.equal(fleet.treeRoom.meeting(demands, expected.length - 1), undefined);
  return expected.length;
}

const anyDemand: fc.Arbitrary<Demand> = fc
  .record({ classId: fc.integer({ min: 1, max: classNames.length }), ofOne: fc.nat(6), more: fc.nat(4) })
  .map(({ classId, ofOne, more }) => ({ classId, ofOne, total: ofOne + more }));
const anyDemands = fc.array(anyDemand, { minLength: 1, maxLength: 3 });
const moving = ['claim', 'ownClaim', 'inventory', 'move', 'remove', 'add'] as const;
const changesUpTo = (maxLength: number, at: number) =>
  fc.array(fc.record({ kind: fc.constantFrom(...moving), at: fc.nat(at), what: fc.nat(20) }), { maxLength });

test('the trees with room are equal to those that plain sums find, whatever changed before', () => {
  let some = 0;
  fc.assert(
    fc.property(
      anyTopology,
      fc.array(anyDemands, { minLength: 1, maxLength: 4 }),
      changesUpTo(12, 20),
      (nodes, wanted, list) => {
        let rows = rowsOf(nodes);
        const living = createFleet(rows);
        for (const demands of wanted) check(living, rows, demands);
        for (const change of list) {
          rows = changeFleet(living, rows, change);
          for (const demands of wanted) some += Number(check(living, rows, demands, change.kind) > 0);
        }
      },
    ),
    { numRuns: 400 },
  );
  assert.ok(some > 500, `${some} answers`);
});

test('the trees with room are right among thousands of trees, with more changes than are taken in one by one', () => {
  const largest = 30;
  fc.assert(
    fc.property(
      fc.infiniteStream(fc.nat(1_000_000)),
      fc.array(changesUpTo(40, 3000), { minLength: 2, maxLength: 3 }),
      (stream, rounds) => {
        const random = (most: number): number => (stream.next().value ?? 0) % most;
        const stock = (): Stock => ({ ...stockOf(largest), used: random(largest) });
        const nodes = Array.from({ length: 2200 }, (_, index) =>
          nodeAt(index, {
            ...(index > 0 && random(5) === 0 ? { parent: index - 1 } : {}),
            stock: { VCPU: stock(), ...(random(2) === 0 ? { DISK_GB: stock() } : {}) },
          }),
        );
        let rows = rowsOf(nodes);
        const living = createFleet(rows);
        const wanted = [1, largest - 1, largest, largest + 1].map((ofOne) => [{ classId: 1, ofOne, total: ofOne + 3 }]);
        for (const list of rounds) {
          for (const { id } of rows.providers.slice(0, random(2) * 1500)) {
            showEffects(living.fleet, { effects: [{ providerId: id, bump: 1, used: [{ classId: 1, delta: 1 }] }] }, 1);
            showEffects(living.fleet, { effects: [{ providerId: id, bump: 1, used: [{ classId: 1, delta: -1 }] }] }, 1);
          }
          for (const change of list) rows = changeFleet(living, rows, change);
          for (const demands of wanted) check(living, rows, demands);
          check(living, rows, [...(wanted[1] ?? []), { classId: 3, ofOne: 9, total: 9 }]);
        }
      },
    ),
    { numRuns: 6 },
  );
});

test('a tree that has room is found while the fleet grows beyond what a list was made for', () => {
  const full: Stock = { ...stockOf(8), used: 8 };
  const rows = rowsOf(
    Array.from({ length: 3000 }, (_, index) =>
      nodeAt(index, { stock: { VCPU: [7, 2500].includes(index) ? stockOf(8) : full } }),
    ),
  );
  const between = (start: number, end: number): AllRows => ({
    ...rows,
    providers: rows.providers.slice(start, end),
    inventories: rows.inventories.slice(start, end),
  });
  const living = createFleet(between(0, 1800));
  for (let length = 1800; length < rows.providers.length; length += 200) {
    check(living, between(0, length), [{ classId: 1, ofOne: 8, total: 8 }], `${length} trees`);
    const added = between(length, length + 200);
    const growing = living.gather();
    growing.add(pageOf(added));
    growing.apply(
      added.providers.map(({ id }) => id),
      { traitNames: null, classNames: null, limits: null },
    );
  }
  assert.equal(living.fleet.treeRoom.made, 1, 'the list grew');
});

test('a list is made once, and no more than sixteen are cached', () => {
  const fleet = fleetOf([nodeAt(0, { stock: { VCPU: stockOf(8) } })]);
  const demand = (classId: number): Demand => ({ classId, ofOne: 1, total: 1 });
  for (let round = 0; round < 3; round++) fleet.treeRoom.meeting([demand(1)], 9);
  assert.equal(fleet.treeRoom.made, 1);
  for (let classId = 2; classId <= 17; classId++) fleet.treeRoom.meeting([demand(classId)], 9);
  assert.equal(fleet.treeRoom.made, 17);
  assert.equal(fleet.treeRoom.meeting([demand(1)], 9)?.length, 1);
  assert.equal(fleet.treeRoom.made, 18, 'the first one was given up');
});

test('a repeated query of more classes than cached lists makes no list again', () => {
  const fleet = fleetOf([]);
  const demands = Array.from({ length: 17 }, (_, classId) => ({ classId, ofOne: 1, total: 2 }));
  fleet.treeRoom.meeting(demands, 1);
  const { made } = fleet.treeRoom;
  fleet.treeRoom.meeting(demands, 1);
  assert.equal(fleet.treeRoom.made, made);
});
