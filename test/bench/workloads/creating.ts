import { randomUUID } from 'node:crypto';
import type { Connection } from '../connection.ts';
import { aggregateUuid, flatHost, type ProviderShape } from '../data_set.ts';
import { measure, perform } from '../measure.ts';
import { expectStatus, type Workload } from './workload.ts';

/** W1: creating providers as an agent does, with four requests each. They are deleted afterwards. */
export const creating: Workload = {
  name: 'W1 creating a provider (4 requests), c8',
  dataSet: 'flat',
  run: async (server, { durationMs }) => {
    const created: string[] = [];
    const measured = await measure(server, 8, { durationMs }, async (connection, call) => {
      const uuid = randomUUID();
      await createProvider(connection, uuid, flatHost.inventories);
      await putPart(connection, uuid, 'traits', { traits: flatHost.traits(call) }, 1);
      await putPart(connection, uuid, 'aggregates', { aggregates: [aggregateUuid(call)] }, 2);
      created.push(uuid);
    });
    await perform(server, { most: created.length }, async (connection, call) => {
      expectStatus((await connection.send('DELETE', `/resource_providers/${created[call]}`)).status, 204);
    });
    return measured;
  },
};

/** Creates a provider without children, and its inventories. */
export async function createProvider(
  connection: Connection,
  uuid: string,
  inventories: ProviderShape['inventories'],
): Promise<void> {
  const created = await connection.send('POST', '/resource_providers', JSON.stringify({ uuid, name: `bench-${uuid}` }));
  expectStatus(created.status, 200);
  const bodies = Object.entries(inventories).map(([resourceClass, { total, reserved = 0, ratio = 1 }]) => [
    resourceClass,
    { total, reserved, allocation_ratio: ratio },
  ]);
  await putPart(connection, uuid, 'inventories', { inventories: Object.fromEntries(bodies) }, 0);
}

/** @param generation the provider's generation before; each part that is written raises it by one */
async function putPart(connection: Connection, uuid: string, part: string, body: object, generation: number) {
  const content = JSON.stringify({ ...body, resource_provider_generation: generation });
  expectStatus((await connection.send('PUT', `/resource_providers/${uuid}/${part}`, content)).status, 200);
}
