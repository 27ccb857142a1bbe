import { randomUUID } from 'node:crypto';
import { claimedResources } from '../data_set.ts';
import { type Concurrency, inName, measure, perform, sharesOf, withConnection } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { claimOn, release } from './claims.ts';
import { createProvider } from './creating.ts';
import { expectStatus, type Workload } from './workload.ts';

/**
 * W5: all claims are on the same provider. It is measured until 80 % of the provider is used. Then the clients claim
 * more than the rest. In the end the usage must be equal to the acknowledged claims, and to the capacity.
 */
export const hotSpot = (concurrency: Concurrency): Workload => ({
  name: `W5 hot spot: claims on one provider, ${inName(concurrency)}`,
  dataSet: 'flat',
  run: async (server, { durationMs }) => {
    const share = Math.max(50, 2 * durationMs);
    const room = share * sharesOf(concurrency, server);
    const provider = randomUUID();
    const consumers: string[] = [];
    let conflicts = 0;
    await withConnection(server, async (connection) => {
      const entries = Object.entries(claimedResources).map(([name, amount]) => [name, { total: room * amount }]);
      await createProvider(connection, provider, Object.fromEntries(entries));
    });
    const most = Math.floor(share * 0.8);
    const measured = await measure(server, concurrency, { durationMs, most, coldStart: true }, async (connection) => {
      const consumer = randomUUID();
      const { status } = await connection.send('PUT', `/allocations/${consumer}`, claimOn(provider));
      expectStatus(status, 204, 409);
      if (status === 204) consumers.push(consumer);
      else conflicts += 1;
    });
    await overrun(server, provider, room, consumers);
    await release(server, consumers);
    await perform(server, { most: 1 }, async (connection) => {
      expectStatus((await connection.send('DELETE', `/resource_providers/${provider}`)).status, 204);
    });
    return { ...measured, note: `${conflicts} answers 409 while there was room; ${room} of ${room} used in the end` };
  },
});

/**
 * Claims until the provider is full, and some more. Repeats a claim that lost a race. @throws Error if the usage is
 * wrong
 */
async function overrun(server: MeasuredServer, provider: string, room: number, consumers: string[]): Promise<void> {
  await perform(server, { most: room - consumers.length + 40 }, async (connection) => {
    for (let lostRace = true; lostRace; ) {
      const consumer = randomUUID();
      const { status, body } = await connection.send('PUT', `/allocations/${consumer}`, claimOn(provider), true);
      expectStatus(status, 204, 409);
      if (status === 204) consumers.push(consumer);
      lostRace = body.includes('placement.concurrent_update');
    }
  });
  await withConnection(server, async (connection) => {
    const answer = await connection.send('GET', `/resource_providers/${provider}/usages`, '', true);
    const used: number = JSON.parse(answer.body).usages.VCPU;
    if (used === consumers.length && used === room) return;
    throw new Error(`The provider has room for ${room}, acknowledged ${consumers.length}, and used are ${used}.`);
  });
}
