/** Snapshots that are held while the fleet changes: what they show stays, the fleet is as if none were held, and memory is bounded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import v8 from 'node:v8';
import vm from 'node:vm';
import fc from 'fast-check';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { createHeldSnapshots, type HeldSnapshot } from '../../src/fleet/model/held_snapshots.ts';
import type { Provider } from '../../src/fleet/model/provider.ts';
import { candidateKey } from '../candidates/candidate_key.ts';
import { groupOf, requestOf } from '../candidates/plain_request.ts';
import { anyChange } from '../candidates/random_change.ts';
import { anyTopology } from '../candidates/random_topology.ts';
import { fleetOf, nodeAt, rowsOf, stockOf } from '../candidates/topology.ts';
import { formOf } from '../races/fleet_form.ts';
import { search } from '../support/search.ts';
import { changeFleet } from './change_fleet.ts';
import { createFleet } from './made_up_fleet.ts';

/** All that an answer can read of a provider and of those linked with it. */
const contentOf = ({ parent, root, tree, inventories, ...own }: Provider) => ({
  ...own,
  // An index in a list of the fleet, and what is cached.
  rootIndex: undefined,
  cache: undefined,
  parent: parent?.uuid,
  root: root.uuid,
  tree: tree.map(({ uuid, generation }) => `${uuid} ${generation}`),
  inventories: inventories.map((inventory) => ({ ...inventory })),
});

/** The fleet without generations, which an own write raises before the rows have them, and without what is cached. */
function plainForm(fleet: Fleet) {
  const { providers, ...rest } = formOf(fleet);
  return { ...rest, providers: providers.map((each) => ({ ...each, generation: undefined, cache: undefined })) };
}

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: anyChange },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('hold' as const, 'end' as const), at: fc.nat(3) }) },
  ),
  { minLength: 2, maxLength: 25 },
);

test('a held snapshot stays as it is, and the fleet is the same as without a held snapshot', () => {
  const seen = { compared: 0, replaced: 0 };
  const request = requestOf([groupOf('', { VCPU: 1 })]);
  const all = { strategy: 'depth-first', randomize: false, limited: false } as const;
  const ordered = { ...request, order: [{ kind: 'free', className: 'VCPU', mostFirst: true }] as const };
  const foundIn = (fleet: Fleet, wanted: typeof request) =>
    Array.from(search(fleet, wanted, all), (candidate) => candidateKey(fleet, candidate)).sort();
  fc.assert(
    fc.property(anyTopology, steps, (topology, list) => {
      let rows = rowsOf(topology);
      const living = createFleet(rows);
      const { fleet } = living;
      foundIn(fleet, ordered); // from now on the fleet keeps its trees in this order
      const held: { readonly snapshot: HeldSnapshot; readonly shown: [Provider, ReturnType<typeof contentOf>][] }[] =
        [];
      for (const step of list) {
        if ('what' in step) {
          rows = changeFleet(living, rows, step);
        } else if (step.kind === 'end') {
          const [ended] = held.splice(step.at % Math.max(1, held.length), 1);
          ended?.snapshot.end();
          ended?.snapshot.end();
        } else {
          const snapshot = living.hold(() => assert.fail('so little must be kept'));
          held.push({ snapshot, shown: Array.from(fleet.byId.values(), (each) => [each, contentOf(each)]) });
        }
        for (const { shown } of held) {
          for (const [provider, content] of shown) {
            assert.deepEqual(contentOf(provider), content, step.kind);
            if (fleet.byId.get(provider.id) !== provider) seen.replaced += 1;
          }
          seen.compared += 1;
        }
        const expected = createFleet(rows).fleet;
        assert.deepEqual(plainForm(fleet), plainForm(expected), step.kind);
        assert.deepEqual(foundIn(fleet, request), foundIn(expected, request), step.kind);
        assert.deepEqual(foundIn(fleet, ordered), foundIn(expected, ordered), step.kind);
      }
    }),
    { numRuns: 500 },
  );
  assert.ok(seen.compared > 1000 && seen.replaced > 1000, JSON.stringify(seen));
});

/** A fleet of hosts, and a function that changes the usage of each of them. */
function hostsThatChange(count: number) {
  let rows = rowsOf(Array.from({ length: count }, (_, index) => nodeAt(index, { stock: { VCPU: stockOf(8) } })));
  const living = createFleet(rows);
  const changeAll = (): void => {
    for (let at = 0; at < count; at++) rows = changeFleet(living, rows, { kind: 'ownClaim', at, what: at });
  };
  return { ...living, changeAll };
}

test('nothing is copied while no snapshot is held', () => {
  const { fleet, hold, changeAll } = hostsThatChange(10);
  const before = [...fleet.byId.values()];
  hold(() => {}).end();
  changeAll();
  assert.deepEqual(
    [...fleet.byId.values()].map((each, index) => each === before[index]),
    before.map(() => true),
  );
});

test('each tree is copied once for a snapshot, and once more for a later one', () => {
  const { fleet, hold, changeAll } = hostsThatChange(3);
  const hosts = () => [...fleet.byId.values()];
  const first = hold(() => {});
  const atFirst = hosts();
  changeAll();
  const copies = hosts();
  changeAll();
  assert.ok(hosts().every((each, index) => each === copies[index] && each !== atFirst[index]));
  hold(() => {}).end();
  first.end();
  changeAll();
  assert.ok(hosts().every((each, index) => each === copies[index]));
});

/** Used as a tree: held snapshots only check whether it was copied. */
const newRoot = (): Provider => [...fleetOf([nodeAt(0)]).byId.values()].find(() => true) ?? assert.fail();

test('however many snapshots are held, no more providers are kept than is allowed; the oldest snapshots are dropped', () => {
  const [size, most] = [100, 150];
  const snapshots = createHeldSnapshots();
  const givenUp: number[] = [];
  let largest = 0;
  const changeEverything = (): void => {
    for (let tree = 0; tree < size; tree++) {
      snapshots.noteCopy(newRoot(), 1, most);
      const { kept } = snapshots.counts;
      assert.ok(kept <= most, `${kept} are kept`);
      largest = Math.max(largest, kept);
    }
  };
  for (let number = 0; number < 20; number++) {
    snapshots.hold(size, () => givenUp.push(number));
    changeEverything();
  }
  assert.equal(largest, most);
  assert.deepEqual(givenUp, [...Array(19).keys()]);
  assert.deepEqual(snapshots.counts, { held: 1, kept: size });
  // A single snapshot is kept to its end, whatever changes: it cannot show more than the fleet had.
  for (let round = 0; round < 10; round++) changeEverything();
  assert.deepEqual(snapshots.counts, { held: 1, kept: size });
});

test('when a snapshot ends, its copied providers count for the next older snapshot, and are released after the last one', () => {
  const snapshots = createHeldSnapshots();
  const none = () => assert.fail('nothing must be given up');
  const [older, newer] = [snapshots.hold(10, none), snapshots.hold(10, none)];
  for (let tree = 0; tree < 4; tree++) snapshots.noteCopy(newRoot(), 2, 100);
  assert.deepEqual(snapshots.counts, { held: 2, kept: 8 });
  newer.end();
  assert.deepEqual(snapshots.counts, { held: 1, kept: 8 });
  snapshots.hold(10, none).end();
  snapshots.noteCopy(newRoot(), 5, 100);
  assert.deepEqual(snapshots.counts, { held: 1, kept: 10 }, 'it shows ten providers only');
  older.end();
  assert.deepEqual(snapshots.counts, { held: 0, kept: 0 });
});

test('after a new load nothing is copied for snapshots of the former fleet, which count as a whole fleet', () => {
  const snapshots = createHeldSnapshots();
  const older = snapshots.hold(10, () => {});
  snapshots.leaveFleet(10);
  assert.deepEqual(snapshots.counts, { held: 1, kept: 10 });
  const root = newRoot();
  assert.equal(snapshots.shows(root), false);
  const newer = snapshots.hold(10, () => {});
  assert.equal(snapshots.shows(root), true);
  older.end();
  assert.equal(snapshots.shows(root), true);
  newer.end();
  assert.equal(snapshots.shows(root), false);
  assert.deepEqual(snapshots.counts, { held: 0, kept: 0 });
});

test('the copied providers of a snapshot are released when it ends', async () => {
  v8.setFlagsFromString('--expose-gc');
  const collect: () => void = vm.runInNewContext('gc');
  const { fleet, hold, changeAll } = hostsThatChange(100);
  let shown: Provider[] = [...fleet.byId.values()];
  const weak = shown.map((each) => new WeakRef(each));
  const snapshot = hold(() => {});
  changeAll();
  await setImmediate();
  collect();
  assert.equal(weak.filter((each) => each.deref() !== undefined).length, 100);
  shown = [];
  snapshot.end();
  await setImmediate();
  collect();
  assert.deepEqual([shown.length, weak.filter((each) => each.deref() !== undefined).length], [0, 0]);
});
