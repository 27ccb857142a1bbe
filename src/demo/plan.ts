import { randomUUID } from 'node:crypto';
import type { NewInventory } from '../client/index.ts';
import { sharingTrait } from '../placement/inventory.ts';
import { chosen, openRandom } from './random.ts';

/** A provider to create. */
export type PlannedProvider = {
  readonly uuid: string;
  readonly name: string;
  readonly parent: string | null;
  readonly inventories: { readonly [resourceClass: string]: NewInventory };
  readonly traits: readonly string[];
  readonly aggregates: readonly string[];
};

/** A rack: an aggregate with hosts. */
export type Rack = {
  readonly aggregate: string;
  readonly hosts: number;
  /** The total demand of consumers, relative to the capacity; above 1 some consumers do not fit. */
  readonly wanted: number;
};

/** A whole fleet. */
export type Plan = {
  readonly racks: readonly Rack[];
  /** The waves of creation: a parent is in a wave before its children. */
  readonly waves: readonly (readonly PlannedProvider[])[];
};

const hostsInRack = 32;
const racksOfPool = 4;
const zones = ['CUSTOM_ZONE_A', 'CUSTOM_ZONE_B', 'CUSTOM_ZONE_C'] as const;
const gpu = 'CUSTOM_GPU_A100';

/** The traits of the plan that are not standard ones. */
export const customTraits: readonly string[] = [...zones, gpu];

const kinds = [
  { kind: 'plain', weight: 62 },
  { kind: 'NUMA', weight: 22 },
  { kind: 'GPU', weight: 10 },
  { kind: 'diskless', weight: 6 },
] as const;

const processors = (total: number, reserved: number): NewInventory => ({
  total,
  reserved,
  allocation_ratio: 2,
  max_unit: total,
});
const memory = (total: number, reserved: number): NewInventory => ({ total, reserved, max_unit: total });

/**
 * Plans racks of 32 hosts. Most hosts have all resources themselves. Some have NUMA nodes, and some of these have GPUs.
 * Some have no local disk, and use a pool that four racks share.
 */
export function planFleet(hostCount: number): Plan {
  const random = openRandom(hostCount);
  const racks: Rack[] = [];
  const roots: PlannedProvider[] = [];
  const nodes: PlannedProvider[] = [];
  const devices: PlannedProvider[] = [];
  for (let first = 0; first < hostCount; first += hostsInRack) {
    const number = racks.length + 1;
    const rack = {
      aggregate: randomUUID(),
      hosts: Math.min(hostsInRack, hostCount - first),
      wanted: 0.1 + random(),
    };
    racks.push(rack);
    const zone = zones[Math.floor((number - 1) / racksOfPool) % zones.length] ?? zones[0];
    const isNew = random() < 0.5;
    for (let host = 1; host <= rack.hosts; host++) {
      const { kind } = chosen(random, kinds);
      const uuid = randomUUID();
      const name = `rack${padded(number)}-host${padded(host)}`;
      const local = kind === 'diskless' ? {} : { DISK_GB: { total: 1800, reserved: 50 } };
      const divided = kind === 'NUMA' || kind === 'GPU';
      const own = divided ? {} : { VCPU: processors(64, 2), MEMORY_MB: memory(393_216, 8192) };
      const processorTraits = ['HW_CPU_X86_AVX2', ...(isNew ? ['HW_CPU_X86_AVX512F'] : [])];
      const traits = [zone, ...processorTraits, ...(kind === 'plain' ? ['STORAGE_DISK_SSD'] : [])];
      roots.push({ uuid, name, parent: null, inventories: { ...own, ...local }, traits, aggregates: [rack.aggregate] });
      if (!divided) continue;
      for (const cell of [0, 1]) {
        const node = randomUUID();
        const inventories = { VCPU: processors(32, 1), MEMORY_MB: memory(196_608, 4096) };
        nodes.push({
          uuid: node,
          name: `${name}-numa${cell}`,
          parent: uuid,
          inventories,
          traits: ['HW_NUMA_ROOT', ...processorTraits],
          aggregates: [],
        });
        for (const card of kind === 'GPU' ? [0, 1] : []) {
          const inventory = { PGPU: { total: 1 } };
          devices.push({
            uuid: randomUUID(),
            name: `${name}-gpu${cell * 2 + card}`,
            parent: node,
            inventories: inventory,
            traits: [gpu],
            aggregates: [],
          });
        }
      }
    }
  }
  for (let first = 0; first < racks.length; first += racksOfPool) {
    roots.push({
      uuid: randomUUID(),
      name: `pool${padded(first / racksOfPool + 1)}`,
      parent: null,
      inventories: { DISK_GB: { total: 40_000 * racksOfPool, reserved: 4000 } },
      traits: [sharingTrait],
      aggregates: racks.slice(first, first + racksOfPool).map(({ aggregate }) => aggregate),
    });
  }
  return { racks, waves: [roots, nodes, devices] };
}

const padded = (number: number): string => String(number).padStart(2, '0');
