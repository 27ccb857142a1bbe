/** Counts in small fleets whose trees share providers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupOf, requestOf } from '../plain_request.ts';
import {
  aggregates,
  type ClassName,
  fleetOf,
  type Node,
  nodeAt,
  sharingTrait,
  stockOf,
  type Topology,
} from '../topology.ts';
import { countNow } from './count_now.ts';

const unlimited = { max: 1_000_000, top: 100 };

test('a tree that shares is counted at least as high together with other trees as alone', () => {
  // Only if the root gives memory to a third of the consumers and functions to the others, so many fit.
  const [root, child, other] = [
    nodeAt(0, { stock: { MEMORY_MB: stockOf(400), SRIOV_NET_VF: stockOf(400) }, traits: ['CUSTOM_RARE'] }),
    nodeAt(1, { parent: 0, stock: { MEMORY_MB: stockOf(400), SRIOV_NET_VF: stockOf(200) } }),
    nodeAt(2, { stock: { MEMORY_MB: stockOf(1) }, traits: ['CUSTOM_RARE'], aggregates: [aggregates[0]] }),
  ];
  const sharing = { traits: [sharingTrait], aggregates: [aggregates[0]] } as const;
  const wanted = groupOf(
    '',
    { MEMORY_MB: 2, SRIOV_NET_VF: 2 },
    { traits: { required: [['CUSTOM_RARE']], forbidden: [] } },
  );
  const counted = (...nodes: Topology) => {
    const { count, exact, trees } = countNow(fleetOf(nodes), requestOf([wanted]), unlimited);
    return { count, exact, trees: trees.map((tree) => tree.count) };
  };
  const most = { count: 300, exact: true, trees: [300] };
  assert.deepEqual(counted(root, child), most);
  assert.deepEqual(counted(root, { ...child, ...sharing }), most);
  assert.deepEqual(counted(root, { ...child, ...sharing }, other), most);
});

test('racks that each share a disk are counted apart, and each of them exactly', () => {
  // The first rack has little disk, and the second one little VCPU.
  const rackOf = (first: number, aggregate: string, vcpus: number, disk: number): Topology => [
    nodeAt(first, { stock: { VCPU: stockOf(vcpus) }, aggregates: [aggregate] }),
    nodeAt(first + 1, { stock: { VCPU: stockOf(vcpus) }, aggregates: [aggregate] }),
    nodeAt(first + 2, { stock: { DISK_GB: stockOf(disk) }, traits: [sharingTrait], aggregates: [aggregate] }),
  ];
  const fleet = fleetOf([...rackOf(0, aggregates[0], 5, 3), ...rackOf(3, aggregates[1], 1, 10)]);
  const { count, exact } = countNow(fleet, requestOf([groupOf('', { VCPU: 1, DISK_GB: 1 })]), unlimited);
  assert.deepEqual({ count, exact }, { count: 5, exact: true });
});

type Amounts = Partial<Readonly<Record<ClassName, number>>>;

/** A root with these amounts, in the aggregates of these numbers. */
const hostAt = (index: number, amounts: Amounts, members: readonly (0 | 1)[], isSharing = false): Node =>
  nodeAt(index, {
    stock: Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, stockOf(amount)])),
    traits: isSharing ? [sharingTrait] : [],
    aggregates: members.map((member) => aggregates[member]),
  });

/** For each way to place consumers a fleet in which only this way places all that fit. */
const onlyOneWay: readonly {
  readonly way: string;
  readonly wanted: readonly Amounts[];
  readonly hosts: Topology;
  readonly count: number;
}[] = [
  {
    way: 'one by one, where most is left',
    wanted: [{ VCPU: 1, DISK_GB: 1 }, { DISK_GB: 2 }],
    hosts: [
      hostAt(0, { VCPU: 1, DISK_GB: 3 }, [0], true),
      hostAt(1, { DISK_GB: 1 }, [0]),
      hostAt(2, { VCPU: 1, DISK_GB: 2 }, [0]),
    ],
    count: 2,
  },
  {
    way: 'first where few fit',
    wanted: [{ VCPU: 1 }, { DISK_GB: 2 }],
    hosts: [
      hostAt(0, { VCPU: 1 }, [1], true),
      hostAt(1, { DISK_GB: 2 }, [1], true),
      hostAt(2, { DISK_GB: 2 }, [1]),
      hostAt(3, { VCPU: 1 }, [1]),
    ],
    count: 2,
  },
  {
    way: 'first where many fit',
    wanted: [{ VCPU: 1 }, { DISK_GB: 1 }],
    hosts: [
      hostAt(0, { VCPU: 1, DISK_GB: 1 }, [0], true),
      hostAt(1, { VCPU: 1 }, [1], true),
      hostAt(2, { VCPU: 1 }, [0]),
      hostAt(3, { DISK_GB: 1 }, [0, 1], true),
      hostAt(4, { DISK_GB: 1 }, [0, 1]),
    ],
    count: 3,
  },
];

for (const { way, wanted, hosts, count } of onlyOneWay) {
  test(`all that fit into trees that share are found by placing them ${way}`, () => {
    const groups = wanted.map((amounts, index) => groupOf(index === 0 ? '' : `${index}`, amounts));
    const counted = countNow(fleetOf(hosts), requestOf(groups), unlimited);
    assert.deepEqual([counted.count, counted.exact], [count, true]);
  });
}
