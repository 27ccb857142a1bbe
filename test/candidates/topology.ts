import type { Fleet } from '../../src/fleet/model/fleet.ts';
import type { AllRows } from '../fleet/made_up_fleet.ts';
import { createFleet } from '../fleet/made_up_fleet.ts';
import { numberedUuid } from '../support/uuids.ts';

/** An inventory of a small made-up deployment, with what is used of it. */
export type Stock = {
  readonly total: number;
  readonly reserved: number;
  readonly min_unit: number;
  readonly max_unit: number;
  readonly step_size: number;
  readonly allocation_ratio: number;
  readonly used: number;
};

/** A provider as plain data. Its id is its index in the topology, plus 1. */
export type Node = {
  readonly uuid: string;
  /** The index of the parent; it is smaller than the provider's own. */
  readonly parent: number | undefined;
  readonly stock: Readonly<Record<ClassName, Stock | undefined>>;
  readonly traits: readonly TraitName[];
  readonly aggregates: readonly string[];
};

/** A small deployment as plain data: what both the oracle and the fleet are made of. */
export type Topology = readonly Node[];

export const classNames = ['VCPU', 'MEMORY_MB', 'DISK_GB', 'SRIOV_NET_VF'] as const;
export type ClassName = (typeof classNames)[number];

export const sharingTrait = 'MISC_SHARES_VIA_AGGREGATE';
export const traitNames = [sharingTrait, 'HW_CPU_X86_AVX2', 'STORAGE_DISK_SSD', 'CUSTOM_FAST', 'CUSTOM_RARE'] as const;
export type TraitName = (typeof traitNames)[number];

export const providerUuid = (index: number): string => numberedUuid(index, 'a');
export const aggregates = [numberedUuid(0, 'b'), numberedUuid(1, 'b'), numberedUuid(2, 'b')] as const;
/** An aggregate without providers. */
export const emptyAggregate = numberedUuid(9, 'b');

const names = (all: readonly string[]) =>
  all.map((name, index) => ({ id: index + 1, name, created: null, updated: null }));

const nothing: Node['stock'] = { VCPU: undefined, MEMORY_MB: undefined, DISK_GB: undefined, SRIOV_NET_VF: undefined };

/** A root that has nothing unless `more` says so. */
export const nodeAt = (
  index: number,
  { stock = {}, ...more }: Partial<Omit<Node, 'stock'>> & { readonly stock?: Partial<Node['stock']> } = {},
): Node => ({
  uuid: providerUuid(index),
  parent: undefined,
  stock: { ...nothing, ...stock },
  traits: [],
  aggregates: [],
  ...more,
});

/** An inventory that one claim can have all of. */
export const stockOf = (total: number): Stock => ({
  total,
  reserved: 0,
  min_unit: 1,
  max_unit: total,
  step_size: 1,
  allocation_ratio: 1,
  used: 0,
});

/** The rows that the database would have of a topology. */
export const rowsOf = (topology: Topology): AllRows => ({
  providers: topology.map(({ uuid, parent }, index) => ({
    id: index + 1,
    uuid,
    name: `provider ${index}`,
    generation: 0,
    parent: parent === undefined ? null : parent + 1,
    created: null,
    updated: null,
  })),
  inventories: topology.flatMap(({ stock }, index) =>
    classNames.flatMap((name, classIndex) => {
      const found = stock[name];
      return found === undefined ? [] : [{ provider: index + 1, class: classIndex + 1, modified: null, ...found }];
    }),
  ),
  traits: topology.flatMap(({ traits }, index) =>
    traits.map((name) => ({ provider: index + 1, trait: traitNames.indexOf(name) + 1 })),
  ),
  aggregates: topology.flatMap((node, index) =>
    node.aggregates.map((aggregate) => ({ provider: index + 1, aggregate })),
  ),
  traitNames: names(traitNames),
  classNames: names(classNames),
});

export function rootIndex(topology: Topology, index: number): number {
  const parent = topology[index]?.parent;
  return parent === undefined ? index : rootIndex(topology, parent);
}

/** The fleet of a topology, which no database has. */
export const fleetOf = (topology: Topology): Fleet => createFleet(rowsOf(topology)).fleet;
