/** GET /allocation_candidates with `with` and `apart_from`: where the named consumers are, and what is used, are of one snapshot. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { afterRefresh } from '../races/after_refresh.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, newestVersion, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';

for (const parameter of ['with', 'apart_from']) {
  test(`a consumer that ${parameter} names moves while the query is answered: the answer is of before or after that`, async () => {
    await withFreshDatabase('postgresql', async (database) => {
      const [service, other] = await Promise.all([openServiceOn(database), openServiceOn(database)]);
      try {
        const send = requestsTo(service, `placement ${newestVersion}`);
        const hosts = [randomUUID(), randomUUID(), randomUUID()] as const;
        for (const host of hosts) await makeProvider(send, host, { VCPU: { total: 8 } });
        const consumer = randomUUID();
        const claimOn = async (host: string, consumer_generation: number | null) => {
          const body = { ...newClaim({ [host]: { VCPU: 1 } }), consumer_generation };
          accepted(await requestsTo(other)('PUT', `/allocations/${consumer}`, body));
        };
        await claimOn(hosts[0], null);
        let moves = 0;
        afterRefresh(service, 1, async () => {
          moves += 1;
          await claimOn(hosts[1], 1);
          await service.fleet.fresh();
        });
        const answer = accepted(await send('GET', `/allocation_candidates?resources=VCPU:1&${parameter}=${consumer}`));
        assert.equal(moves, 1);
        const summaries = Object.entries(Object(at(answer.json, 'provider_summaries')));
        const used = summaries.map(([, summary]) => at(summary, 'resources', 'VCPU', 'used'));
        assert.deepEqual(used, parameter === 'with' ? [1] : [0, 0], JSON.stringify(summaries));
      } finally {
        await Promise.all([service.close(), other.close()]);
      }
    });
  });
}
