/** The figures of hypervisors are those of one snapshot, also if the fleet changes before the answer is complete. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { asNova, services, withRegistry } from './nova.ts';

const details = ['/compute/v2.1/os-hypervisors/detail', '/compute/v2.1/os-hypervisors/statistics'] as const;

for (const path of details) {
  test(`usage that moves while ${path} waits for the database counts once`, async () => {
    await withTestService(anyEngine, withRegistry, async (service) => {
      const { database, fleet } = service;
      const [send, sendAsNova] = [requestsTo(service, 'placement 1.38'), asNova(service)];
      const hosts = ['one', 'two'].map((name) => ({ name, uuid: randomUUID() }));
      for (const { name, uuid } of hosts) {
        await makeProvider(send, uuid, { VCPU: { total: 8 } }, { name });
        accepted(await sendAsNova('POST', services, { host: name, binary: 'nova-compute' }));
      }
      const claimOn = async (index: number, amount: number, consumer: string, consumer_generation: number | null) => {
        const claim = newClaim({ [hosts[index]?.uuid ?? '']: { VCPU: amount } });
        accepted(await send('PUT', `/allocations/${consumer}`, { ...claim, consumer_generation }));
      };
      const consumer = randomUUID();
      await claimOn(1, 5, consumer, null);
      accepted(await send('GET', '/resource_providers'));
      // While a long answer is sent that began before, the first host has changed, and the second one has not.
      const snapshot = fleet.hold(() => assert.fail('so little must be kept'));
      await claimOn(0, 1, randomUUID(), null);

      let moves = 0;
      const { kysely } = database;
      const counting = new WeakSet<object>();
      Object.assign(database, {
        kysely: kysely.withPlugin({
          transformQuery: ({ node, queryId }) => {
            if (JSON.stringify(node).includes('count(distinct a.consumer_id)')) counting.add(queryId);
            return node;
          },
          transformResult: async ({ result, queryId }) => {
            if (!counting.has(queryId)) return result;
            moves += 1;
            await claimOn(0, 5, consumer, 1);
            accepted(await send('GET', '/resource_providers'));
            return result;
          },
        }),
      });
      const { json } = accepted(await sendAsNova('GET', path));
      Object.assign(database, { kysely });
      snapshot.end();
      assert.equal(moves, 1);
      if (path.endsWith('statistics')) assert.equal(at(json, 'hypervisor_statistics', 'vcpus_used'), 6);
      else
        assert.deepEqual(
          [0, 1].map((index) => at(json, 'hypervisors', index, 'vcpus_used')),
          [1, 5],
        );
    });
  });
}
