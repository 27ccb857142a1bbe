import { createHash } from 'node:crypto';

/*
 * The data of the measurements. It is the same each time, and a larger set contains the smaller one: the UUID and the
 * name of a provider follow from its kind and its number `n`.
 */

export type Inventory = {
  readonly total: number;
  readonly reserved?: number;
  readonly min?: number;
  readonly max?: number;
  readonly step?: number;
  readonly ratio?: number;
};

/** One provider of a tree that is `count` times in the data set. */
export type ProviderShape = {
  readonly kind: string;
  /** The kind of its parent, which comes before it. */
  readonly parent?: string;
  readonly inventories: Readonly<Record<string, Inventory>>;
  /** The traits of provider `n`. */
  readonly traits: (n: number) => readonly string[];
  /** The traits repeat after this many providers. */
  readonly traitsRepeatAfter: number;
  /** Whether it belongs to one of the ten aggregates, and every second one is partly used. */
  readonly populated: boolean;
};

/** The amounts that one claim takes of a provider. */
export const claimedResources = { VCPU: 1, MEMORY_MB: 256, DISK_GB: 10 } as const;

/** The amounts that one consumer uses of every second flat provider. */
export const usedResources = { VCPU: 8, MEMORY_MB: 16384, DISK_GB: 100 } as const;

export const project = 'bench-project';
export const user = 'bench-user';

/** Hosts without children: three inventories, three traits, one aggregate. */
export const flatHost: ProviderShape = {
  kind: 'host',
  inventories: {
    VCPU: { total: 64, ratio: 8 },
    MEMORY_MB: { total: 262144, reserved: 512 },
    DISK_GB: { total: 8192 },
  },
  traits: (n) => [
    Math.floor(n / 10) % 10 < 7 ? 'HW_CPU_X86_AVX2' : 'HW_CPU_X86_SSE42',
    Math.floor(n / 100) % 10 < 4 ? 'CUSTOM_BENCH_GOLD' : 'CUSTOM_BENCH_SILVER',
    Math.floor(n / 10) % 10 === 0 ? 'CUSTOM_BENCH_MAINT' : 'CUSTOM_BENCH_IN_SERVICE',
  ],
  traitsRepeatAfter: 1000,
  populated: true,
};

/** A compute node with two NUMA nodes, three FPGAs and a GPU: the tree that upstream measures nested queries on. */
export const computeNodeTree: readonly ProviderShape[] = [
  child('cn', undefined, { DISK_GB: { total: 20480 } }, ['COMPUTE_VOLUME_MULTI_ATTACH']),
  child('numa0', 'cn', { VCPU: { total: 4, reserved: 2 }, MEMORY_MB: { total: 2048, min: 512, step: 256 } }, [
    'HW_NUMA_ROOT',
  ]),
  child('fpga0_0', 'numa0', { FPGA: { total: 1 } }),
  child('pgpu0_0', 'numa0', { VGPU: { total: 8 } }),
  child('numa1', 'cn', { VCPU: { total: 4 }, MEMORY_MB: { total: 2048, min: 256, max: 1024 } }, [
    'HW_NUMA_ROOT',
    'CUSTOM_FOO',
  ]),
  child('fpga1_0', 'numa1', { FPGA: { total: 1 } }),
  child('fpga1_1', 'numa1', { FPGA: { total: 1 } }),
];

function child(
  kind: string,
  parent: string | undefined,
  inventories: ProviderShape['inventories'],
  traits: readonly string[] = [],
): ProviderShape {
  const parents = parent === undefined ? {} : { parent };
  return { kind, ...parents, inventories, traits: () => traits, traitsRepeatAfter: 1, populated: false };
}

export const providerUuid = (kind: string, n: number): string => uuidOf(`${kind}-${n}`);

/** The consumer that uses the provider, if `n` is even. */
export const consumerUuid = (n: number): string => uuidOf(`consumer-${n}`);

export const aggregateUuid = (n: number): string => uuidOf(`aggregate-${n % 10}`);

/** The same as `uuidSql` in load_by_sql.ts. */
function uuidOf(name: string): string {
  const hex = createHash('md5').update(name).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join('-');
}
