import assert from 'node:assert/strict';
import { sql } from 'kysely';
import type { PlacementService } from '../../src/service.ts';
import { ask, type Reply } from '../compute/nova.ts';
import { withTestService } from '../services.ts';

export const [host, holder] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000011'];

/** A deployment that the API made, into whose database other programs write what the API would not. */
export type Deployment = {
  readonly service: PlacementService;
  send(method: string, path: string, body?: unknown): Promise<Reply>;
  /** Sends what must succeed. */
  succeed(method: string, path: string, body?: unknown): Promise<Reply>;
  /** What another program does. */
  execute(...statements: readonly string[]): Promise<void>;
};

/** What `amount` VCPU of the host are for a consumer that is new. */
export const claimOf = (amount: number) => ({
  allocations: { [host]: { resources: { VCPU: amount } } },
  project_id: 'project',
  user_id: 'user',
  consumer_generation: null,
  consumer_type: 'INSTANCE',
});

/** Calls back where `holder` has 2 of the 8 VCPU of `host`, whose generation is 2. */
export async function withDeployment(use: (deployment: Deployment) => Promise<void>): Promise<void> {
  await withTestService('embedded', {}, async (service) => {
    const send: Deployment['send'] = (...request) => ask(service, 'placement 1.39', ...request);
    const succeed: Deployment['succeed'] = async (method, path, body) => {
      const reply = await send(method, path, body);
      assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${JSON.stringify(reply.json)}`);
      return reply;
    };
    const execute: Deployment['execute'] = async (...statements) => {
      for (const statement of statements) await sql.raw(statement).execute(service.database.kysely);
    };
    const inventories = { VCPU: { total: 8 } };
    await succeed('POST', '/resource_providers', { uuid: host, name: 'host' });
    await succeed('PUT', `/resource_providers/${host}/inventories`, { resource_provider_generation: 0, inventories });
    await succeed('PUT', `/allocations/${holder}`, claimOf(2));
    await use({ service, send, succeed, execute });
  });
}
