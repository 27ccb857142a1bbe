import { sql } from 'kysely';
import type { PlacementService } from '../../src/service.ts';
import { type Answer, accepted, makeProvider, newClaim, requestsTo, type Send } from '../requests.ts';
import { withTestService } from '../services.ts';

export const [host, holder] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000011'];

/** A deployment that the API made, into whose database other programs write what the API would not. */
export type Deployment = {
  readonly service: PlacementService;
  readonly send: Send;
  /** Sends what must succeed. */
  succeed(...request: Parameters<Send>): Promise<Answer>;
  /** What another program does. */
  execute(...statements: readonly string[]): Promise<void>;
};

/** What `amount` VCPU of the host are for a consumer that is new. */
export const claimOf = (amount: number) => newClaim({ [host]: { VCPU: amount } });

/** Calls back where `holder` has 2 of the 8 VCPU of `host`, whose generation is 2. */
export async function withDeployment(use: (deployment: Deployment) => Promise<void>): Promise<void> {
  await withTestService('embedded', {}, async (service) => {
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
