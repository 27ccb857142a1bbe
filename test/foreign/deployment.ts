import { sql } from 'kysely';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine, type Engine } from '../support/engines.ts';
import { type Answer, accepted, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { openTestService } from '../support/services.ts';

export const [host, holder] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000011'];

/** A deployment made by the API. Other programs write rows into its database that the API would not write. */
export type Deployment = {
  readonly service: PlacementService;
  readonly send: Send;
  /** Sends a request that must succeed. */
  succeed(...request: Parameters<Send>): Promise<Answer>;
  /** Runs the statements of another program. */
  execute(...statements: readonly string[]): Promise<void>;
};

/** The body of a claim of `amount` VCPU of the host by a new consumer. */
export const claimOf = (amount: number) => newClaim({ [host]: { VCPU: amount } });

/** Opens a service on a fresh database without providers. The caller closes the service. */
export async function openDeployment(engine: Engine): Promise<Deployment> {
  const service = await openTestService(engine);
  const send = requestsTo(service);
  return {
    service,
    send,
    succeed: async (...request) => accepted(await send(...request)),
    execute: async (...statements) => {
      for (const statement of statements) await sql.raw(statement).execute(service.database.kysely);
    },
  };
}

/** Makes `host` with 8 VCPU, of which `holder` has 2. The generation of `host` is 2 then. */
export async function makeHolder({ send, succeed }: Deployment): Promise<void> {
  await makeProvider(send, host, { VCPU: { total: 8 } });
  await succeed('PUT', `/allocations/${holder}`, claimOf(2));
}

/** Calls back with a deployment after `makeHolder`, and closes its service. */
export async function withDeployment(
  use: (deployment: Deployment) => Promise<void>,
  engine: Engine = anyEngine,
): Promise<void> {
  const deployment = await openDeployment(engine);
  try {
    await makeHolder(deployment);
    await use(deployment);
  } finally {
    await deployment.service.close();
  }
}

/** The tables whose rows get their ids from sequences. */
export const numbered = [
  'resource_providers',
  'inventories',
  'allocations',
  'consumers',
  'consumer_types',
  'projects',
  'users',
  'traits',
  'placement_aggregates',
];
const fresh = '00000000-0000-4000-8000-000000000012';

/** Makes writes that need new rows in every table. */
export async function writeAll({ succeed }: Deployment): Promise<void> {
  await succeed('POST', '/resource_providers', { uuid: fresh, name: 'fresh' });
  await succeed('PUT', '/traits/CUSTOM_FRESH');
  await succeed('PUT', '/resource_classes/CUSTOM_FRESH');
  const path = `/resource_providers/${host}`;
  await succeed('POST', `${path}/inventories`, { resource_class: 'CUSTOM_FRESH', total: 1 });
  await succeed('PUT', `${path}/aggregates`, { resource_provider_generation: 3, aggregates: [fresh] });
  await succeed('PUT', `/allocations/${fresh}`, {
    ...claimOf(1),
    project_id: 'fresh',
    user_id: 'fresh',
    consumer_type: 'FRESH',
  });
}
