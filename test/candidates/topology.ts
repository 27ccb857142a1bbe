import type { AllRows } from '../fleet/made_up_fleet.ts';

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

/** A provider as plain data. Its id is its place in the topology, counted from 1. */
export type Node = {
  readonly uuid: string;
  /** The place of the parent, counted from 0; it is smaller than the provider's own. */
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

const uuidOf = (kind: string, place: number): string =>
  `${kind.repeat(8)}-0000-4000-8000-${`${place}`.padStart(12, '0')}`;

export const providerUuid = (place: number): string => uuidOf('a', place);
export const aggregates = [uuidOf('b', 0), uuidOf('b', 1), uuidOf('b', 2)] as const;
/** An aggregate without providers. */
export const emptyAggregate = uuidOf('b', 9);

const names = (all: readonly string[]) =>
  all.map((name, place) => ({ id: place + 1, name, created: null, updated: null }));

const nothing: Node['stock'] = { VCPU: undefined, MEMORY_MB: undefined, DISK_GB: undefined, SRIOV_NET_VF: undefined };

/** A root that has nothing unless `more` says so. */
export const nodeAt = (
  place: number,
  { stock = {}, ...more }: Partial<Omit<Node, 'stock'>> & { readonly stock?: Partial<Node['stock']> } = {},
): Node => ({
  uuid: providerUuid(place),
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
  providers: topology.map(({ uuid, parent }, place) => ({
    id: place + 1,
    uuid,
    name: `provider ${place}`,
    generation: 0,
    parent: parent === undefined ? null : parent + 1,
    created: null,
    updated: null,
  })),
  inventories: topology.flatMap(({ stock }, place) =>
    classNames.flatMap((name, classPlace) => {
      const found = stock[name];
      return found === undefined ? [] : [{ provider: place + 1, class: classPlace + 1, modified: null, ...found }];
    }),
  ),
  traits: topology.flatMap(({ traits }, place) =>
    traits.map((name) => ({ provider: place + 1, trait: traitNames.indexOf(name) + 1 })),
  ),
  aggregates: topology.flatMap((node, place) =>
    node.aggregates.map((aggregate) => ({ provider: place + 1, aggregate })),
  ),
  traitNames: names(traitNames),
  classNames: names(classNames),
});

export function rootIndex(topology: Topology, place: number): number {
  const parent = topology[place]?.parent;
  return parent === undefined ? place : rootIndex(topology, parent);
}
