import { type Client, succeed } from './client.ts';
import { type Random, randomUuid } from './random.ts';

/** Amounts by `slotOf(provider, class)`. */
export type Amounts = ReadonlyMap<string, number>;

/** A few providers with little room, for many clients. */
export type Arena = {
  /** The UUIDs. */
  readonly providers: readonly string[];
  /** The capacity of each slot. */
  readonly capacities: Amounts;
};

export const classes = ['VCPU', 'MEMORY_MB'] as const;

/** One class on one provider. */
export const slotOf = (provider: string, resourceClass: string): string => `${provider} ${resourceClass}`;
export const partsOf = (slot: string): readonly [provider: string, resourceClass: string] => {
  const [provider = '', resourceClass = ''] = slot.split(' ');
  return [provider, resourceClass];
};

/** Makes the providers of a race: 40 VCPU (by a ratio) and 30 MEMORY_MB (some reserved) each. */
export async function buildArena(client: Client, random: Random, size: number): Promise<Arena> {
  const providers = Array.from({ length: size }, () => randomUuid(random));
  for (const uuid of providers) {
    await succeed(client, 'POST', '/resource_providers', 20, { name: `racer ${uuid}`, uuid });
    await succeed(client, 'PUT', `/resource_providers/${uuid}/inventories`, 20, {
      resource_provider_generation: 0,
      inventories: { VCPU: { total: 10, allocation_ratio: 4 }, MEMORY_MB: { total: 34, reserved: 4 } },
    });
  }
  const capacities = new Map<string, number>();
  for (const uuid of providers) capacities.set(slotOf(uuid, 'VCPU'), 40).set(slotOf(uuid, 'MEMORY_MB'), 30);
  return { providers, capacities };
}
