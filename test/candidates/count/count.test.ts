import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Fleet } from '../../../src/fleet/model/fleet.ts';
import { type Kinds, mostTeams } from '../../../src/search/count/bound.ts';
import { crowdedRequest, crowdedTree } from '../crowded.ts';
import { groupOf, requestOf } from '../plain_request.ts';
import { anyRequest } from '../random_request.ts';
import { anyTopology } from '../random_topology.ts';
import { aggregates, fleetOf, nodeAt, sharingTrait, stockOf, type Topology } from '../topology.ts';
import { countNow } from './count_now.ts';
import { naiveCount } from './naive_count.ts';
import { scarce } from './scarce.ts';

/** Up to five providers that have little. About half of them share, and nearly all share aggregates; some topologies are flat. */
const sharedStock: fc.Arbitrary<Topology> = fc
  .record({
    topology: anyTopology.map(scarce),
    shares: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    isFlat: fc.boolean(),
    groups: fc.array(fc.subarray([...aggregates], { minLength: 1 }), { minLength: 5, maxLength: 5 }),
  })
  .map(({ topology, shares, isFlat, groups }) =>
    topology.map((node, index) => {
      const others = node.traits.filter((name) => name !== sharingTrait);
      return {
        ...node,
        parent: isFlat ? undefined : node.parent,
        traits: shares[index] ? [sharingTrait, ...others] : others,
        aggregates: groups[index] ?? [],
      };
    }),
  );

/** How many random cases are tried; a long run may set more. */
const numRuns = Number(process.env.COUNT_CASES ?? 400);

const unlimited = { max: 1_000_000, top: 100 };

const usageOf = (fleet: Fleet) =>
  [...fleet.byId.values()].map(({ inventories }) => inventories.map(({ used }) => used));

suite('how many consumers can be claimed', () => {
  test('as many consumers as are counted can be placed, and no more if the count is exact', (t) => {
    const seen = new Map<string, number>();
    const note = (what: string, isSo = true): void => {
      seen.set(what, (seen.get(what) ?? 0) + Number(isSo));
    };
    const ofOneGroup = anyRequest.map((request) => ({
      ...request,
      groups: request.groups.slice(0, 1),
      sameSubtrees: [],
    }));
    const cases = fc.oneof(
      { weight: 3, arbitrary: fc.tuple(anyTopology.map(scarce), anyRequest) },
      { weight: 2, arbitrary: fc.tuple(anyTopology.map(scarce), ofOneGroup) },
      { weight: 3, arbitrary: fc.tuple(sharedStock, anyRequest) },
      { weight: 2, arbitrary: fc.tuple(sharedStock, ofOneGroup) },
      { weight: 1, arbitrary: fc.tuple(crowdedTree, crowdedRequest) },
    );
    fc.assert(
      fc.property(cases, ([topology, wanted]) => {
        const request = { ...wanted, nested: true };
        fc.pre(request.groups.some(({ resources }) => resources.size > 0));
        const most = naiveCount(topology, request);
        if (most === undefined) return note('too many ways');
        const fleet = fleetOf(topology);
        const before = usageOf(fleet);
        const { count, exact, trees } = countNow(fleet, request, unlimited);
        assert.deepEqual(usageOf(fleet), before);
        assert.ok(exact ? count === most : count <= most, `${count}, exact ${exact}; naive ${most}`);
        const [group, ...others] = request.groups;
        const shares = topology.some(({ traits }) => traits.includes(sharingTrait));
        if (others.length === 0 && (group?.suffix !== '' || !shares)) assert.equal(exact, true, 'one group');

        for (const { root, count: alone } of trees) {
          assert.ok(alone <= count, `${count}, and ${alone} at ${root.name} alone`);
          const ofTree = naiveCount(
            topology,
            request,
            topology.filter(({ uuid }) => uuid === root.uuid),
          );
          if (ofTree !== undefined) assert.ok(alone <= ofTree && (!exact || shares || alone === ofTree));
        }
        note('one group', others.length === 0);
        note('several fit into trees that share', shares && most > 1 && trees.length > 1);
        note('one group with sharing', others.length === 0 && shares && group?.suffix === '');
        note('several groups', others.length > 0);
        note('something fits', most > 0);
        note('several groups fit', most > 1 && others.length > 0);
        note('exact with several groups, which fit', exact && most > 0 && others.length > 0);
        note('more than was found', count < most);
      }),
      { numRuns },
    );
    t.diagnostic(JSON.stringify(Object.fromEntries(seen)));
    for (const what of [
      'one group with sharing',
      'several fit into trees that share',
      'several groups fit',
      'exact with several groups, which fit',
    ]) {
      assert.ok((seen.get(what) ?? 0) > numRuns / 200, `${what}: ${seen.get(what)} of ${numRuns} cases`);
    }
  });

  test('a count that takes too much work is not called exact', () => {
    let notExact = 0;
    fc.assert(
      fc.property(
        fc.tuple(crowdedTree, crowdedRequest),
        fc.integer({ min: 0, max: 300 }),
        ([topology, wanted], steps) => {
          const request = { ...wanted, nested: true };
          fc.pre(request.groups.some(({ resources }) => resources.size > 0));
          const most = naiveCount(topology, request);
          fc.pre(most !== undefined);
          const { count, exact } = countNow(fleetOf(topology), request, { ...unlimited, steps });
          assert.ok(exact ? count === most : count <= (most ?? 0), `${count}, exact ${exact}; naive ${most}`);
          notExact += Number(!exact);
        },
      ),
      { numRuns },
    );
    assert.ok(notExact > numRuns / 20, `${notExact} of ${numRuns} counts are not exact`);
  });

  test('mostTeams finds the largest number of teams that cover all needs', () => {
    const kinds = fc.dictionary(fc.constantFrom('0', '1', '2', '3'), fc.integer({ min: 1, max: 2 }));
    fc.assert(
      fc.property(fc.array(kinds, { minLength: 1, maxLength: 3 }), fc.constantFrom(1, 3), (lists, needs) => {
        const counted = lists.map(
          (each): Kinds => new Map(Object.entries(each).map(([kind, count]) => [Number(kind) & needs, count])),
        );
        assert.deepEqual(mostTeams(counted, needs), { count: naiveTeams(counted, needs), exact: true });
      }),
      { numRuns },
    );
  });

  test('mostTeams takes as many teams of the last kind as there are in one step', () => {
    const many = 2_000_000_000;
    const lists = [new Map([[1, many]]), new Map([[2, many]]), new Map([[0, many]])];
    assert.deepEqual(mostTeams(lists, 3), { count: many, exact: true });
  });

  test('mostTeams pairs two lists with many kinds, though it must dissolve pairs that it made first', () => {
    const kinds = fc.array(fc.tuple(fc.integer({ min: 1, max: 15 }), fc.integer({ min: 1, max: 3 })), { maxLength: 6 });
    fc.assert(
      fc.property(kinds, kinds, (left, right) => {
        const lists = [new Map(left), new Map(right)] as const;
        assert.deepEqual(mostTeams(lists, 15), { count: naivePairs(lists, 15), exact: true });
      }),
      { numRuns },
    );
  });

  test('the group without suffix: each class is counted by itself, over all providers of a tree', () => {
    const topology = [
      nodeAt(0, { stock: { DISK_GB: stockOf(100) } }),
      nodeAt(1, { parent: 0, stock: { VCPU: stockOf(8) } }),
      nodeAt(2, { parent: 0, stock: { VCPU: stockOf(7) } }),
      nodeAt(3, { stock: { VCPU: stockOf(64), DISK_GB: stockOf(30) } }),
    ];
    const { count, exact, trees } = countNow(fleetOf(topology), requestOf([groupOf('', { VCPU: 2, DISK_GB: 10 })]), {
      max: 100,
      top: 1,
    });
    assert.deepEqual(
      { count, exact, trees: trees.map(({ root, count }) => [root.name, count]) },
      { count: 10, exact: true, trees: [['provider 0', 7]] },
    );
  });

  test('a count that reaches max is not exact, and no tree has a larger count', () => {
    const fleet = fleetOf([nodeAt(0, { stock: { VCPU: stockOf(8) } }), nodeAt(1, { stock: { VCPU: stockOf(8) } })]);
    const request = requestOf([groupOf('', { VCPU: 1 })]);
    const counted = (max: number) => {
      const { count, exact, trees } = countNow(fleet, request, { max, top: 10 });
      return [count, exact, trees.map((tree) => tree.count)];
    };
    assert.deepEqual([17, 16, 5].map(counted), [
      [16, true, [8, 8]],
      [16, false, [8, 8]],
      [5, false, [5, 5]],
    ]);
  });

  test('hosts that share a disk have together the count that each has alone', () => {
    const hosts = [0, 1, 2].map((index) => nodeAt(index, { stock: { VCPU: stockOf(8) }, aggregates: [aggregates[0]] }));
    const disk = nodeAt(3, { stock: { DISK_GB: stockOf(50) }, traits: [sharingTrait], aggregates: [aggregates[0]] });
    const { count, exact, trees } = countNow(
      fleetOf([...hosts, disk]),
      requestOf([groupOf('', { VCPU: 2, DISK_GB: 10 })]),
      unlimited,
    );
    assert.deepEqual(
      { count, exact, alone: trees.map((tree) => tree.count) },
      { count: 5, exact: true, alone: [4, 4, 4] },
    );
  });

  for (const [what, shared] of Object.entries({
    'beside nothing': [],
    'beside a disk that is shared, and that is not requested': [
      nodeAt(4, { stock: { DISK_GB: stockOf(50) }, traits: [sharingTrait], aggregates: [aggregates[0]] }),
    ],
  })) {
    test(`two isolated groups are spread over three devices, ${what}`, () => {
      const devices = [1, 2, 3].map((index) => nodeAt(index, { parent: 0, stock: { SRIOV_NET_VF: stockOf(2) } }));
      const groups = [groupOf('1', { SRIOV_NET_VF: 1 }), groupOf('2', { SRIOV_NET_VF: 1 })];
      const { count, exact } = countNow(
        fleetOf([nodeAt(0, { aggregates: [aggregates[0]] }), ...devices, ...shared]),
        requestOf(groups, { isolate: true }),
        unlimited,
      );
      assert.deepEqual({ count, exact }, { count: 3, exact: true });
    });
  }
});

function naiveTeams(lists: readonly Kinds[], needs: number): number {
  const [first = new Map<number, number>(), ...rest] = lists;
  let best = 0;
  const descend = (left: readonly Map<number, number>[], made: number, last: string): void => {
    best = Math.max(best, made);
    const teams = left.reduce<number[][]>(
      (all, kinds) =>
        all.flatMap((team) => [...kinds].flatMap(([kind, count]) => (count > 0 ? [[...team, kind]] : []))),
      [[]],
    );
    for (const team of teams) {
      const name = team.join();
      if (name < last || (team.reduce((all, kind) => all | kind, 0) & needs) !== needs) continue;
      descend(
        left.map(
          (kinds, list) => new Map([...kinds].map(([kind, count]) => [kind, kind === team[list] ? count - 1 : count])),
        ),
        made + 1,
        name,
      );
    }
  };
  descend([new Map(first), ...rest.map((kinds) => new Map(kinds))], 0, '');
  return best;
}

/** The same for two lists, member by member: a member may take the partner of another one, if that one finds another partner. */
function naivePairs([left, right]: readonly [Kinds, Kinds], needs: number): number {
  const membersOf = (kinds: Kinds): readonly number[] => [...kinds].flatMap(([kind, count]) => Array(count).fill(kind));
  const [first, second] = [membersOf(left), membersOf(right)];
  const partners = new Map<number, number>();
  const pair = (member: number, visited: Set<number>): boolean =>
    second.some((kind, other) => {
      if (visited.has(other) || (((first[member] ?? 0) | kind) & needs) !== needs) return false;
      visited.add(other);
      const former = partners.get(other);
      if (former !== undefined && !pair(former, visited)) return false;
      partners.set(other, member);
      return true;
    });
  return first.filter((_, member) => pair(member, new Set())).length;
}
