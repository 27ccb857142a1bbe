import { randomUUID } from 'node:crypto';
import { isNoCandidates, type Placement, type Placing, type UnlimitedQuery } from '../client/index.ts';
import { chosen, type Random } from './random.ts';

/** A query, and its relative frequency. */
type Flavor = { readonly weight: number; readonly query: UnlimitedQuery };

const flavor = (weight: number, VCPU: number, gigabytes: number, DISK_GB: number): Flavor => ({
  weight,
  query: { resources: { DISK_GB }, groups: { _CPU: { resources: { VCPU, MEMORY_MB: gigabytes * 1024 } } } },
});

const flavors: readonly [Flavor, ...Flavor[]] = [
  flavor(30, 4, 8, 40),
  flavor(30, 8, 32, 80),
  flavor(22, 16, 32, 160),
  flavor(12, 24, 96, 320),
  {
    weight: 6,
    query: {
      resources: { DISK_GB: 100 },
      groups: {
        _CPU: { resources: { VCPU: 8, MEMORY_MB: 32_768 } },
        _GPU: { resources: { PGPU: 1 }, required: ['CUSTOM_GPU_A100'] },
      },
      group_policy: 'none',
    },
  },
];

const projects = ['web', 'shop', 'search', 'training', 'ci', 'analytics', 'mail'];
const users = ['ada', 'grace', 'edsger', 'barbara'];

const one = (random: Random, names: readonly string[]): string => names[Math.floor(random() * names.length)] ?? '';

/** A new consumer, in one aggregate or anywhere. */
export function newInstance(random: Random, aggregate?: string): readonly [uuid: string, placing: Placing] {
  const { query } = chosen(random, flavors);
  const candidates = {
    ...query,
    ...(aggregate === undefined ? {} : { member_of: [aggregate] }),
    order: ['random'] as const,
  };
  const project_id = one(random, projects);
  return [
    randomUUID(),
    { candidates, project_id, user_id: one(random, users), consumer_generation: null, consumer_type: 'INSTANCE' },
  ];
}

/** Places consumers by one request. If not all of them fit, it places as many as it can. @returns the UUIDs of the placed consumers */
export async function placeAll(
  placement: Placement,
  instances: readonly (readonly [uuid: string, placing: Placing])[],
): Promise<readonly string[]> {
  if (instances.length === 0) return [];
  try {
    await placement.allocations.placeMany(Object.fromEntries(instances));
    return instances.map(([uuid]) => uuid);
  } catch (error) {
    if (!isNoCandidates(error)) throw error;
    if (instances.length === 1) return [];
    const half = instances.length >> 1;
    return [
      ...(await placeAll(placement, instances.slice(0, half))),
      ...(await placeAll(placement, instances.slice(half))),
    ];
  }
}
