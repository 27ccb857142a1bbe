import { sql } from 'kysely';
import type { PlacementService } from '../../src/start/service.ts';
import type { Engine } from '../engines.ts';
import { type Answer, accepted, makeProvider, newClaim, requestsTo, type Send } from '../requests.ts';
import { withTestService } from '../services.ts';

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

/** Calls back with a deployment in which `holder` has 2 of the 8 VCPU of `host`, whose generation is 2. */
export async function withDeployment(
  use: (deployment: Deployment) => Promise<void>,
  engine: Engine = 'embedded',
): Promise<void> {
  await withTestService(engine, {}, async (service) => {
    const send = requestsTo(service);
    const succeed: Deployment['succeed'] = async (...request) => accepted(await send(...request));
    const execute: Deployment['execute'] = async (...statements) => {
      for (const statement of statements) await sql.raw(statement).execute(service.database.kysely);
    };
    await makeProvider(send, host, { VCPU: { total: 8 } });
    await succeed('PUT', `/allocations/${holder}`, claimOf(2));
    await use({ service, send, succeed, execute });
  });
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
