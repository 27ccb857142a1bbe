/** GET /consumers?in_tree while providers move between trees: the consumers and the tree are of one snapshot. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { afterRefresh } from '../races/after_refresh.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, newestVersion, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';

test('a provider leaves the tree, and another provider enters it, before the consumers are read', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const [service, otherProcess] = await Promise.all([openServiceOn(database), openServiceOn(database)]);
    try {
      const send = requestsTo(otherProcess, `placement ${newestVersion}`);
      const [root, other, leaving, coming] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()] as const;
      for (const uuid of [root, other]) accepted(await send('POST', '/resource_providers', { uuid, name: uuid }));
      const stock = { VCPU: { total: 8 } };
      await makeProvider(send, leaving, stock, { parent_provider_uuid: root });
      await makeProvider(send, coming, stock, { parent_provider_uuid: other });
      const claimOn = async (host: string, consumer: string) =>
        accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
      const move = async (uuid: string, parent_provider_uuid: string) =>
        accepted(await send('PUT', `/resource_providers/${uuid}`, { name: uuid, parent_provider_uuid }));
      const consumersIn = async (query: string) => {
        const { json } = accepted(
          await requestsTo(service, `placement ${newestVersion}`)('GET', `/consumers?${query}`),
        );
        const listed = at(json, 'consumers') as readonly unknown[]; // a list, as the API says
        return listed.map((consumer) => at(consumer, 'uuid')).sort();
      };
      const [early, late, arrived] = [randomUUID(), randomUUID(), randomUUID()] as const;
      await claimOn(leaving, early);
      await claimOn(coming, arrived);
      assert.deepEqual(await consumersIn(`in_tree=${root}`), [early]);
      let moves = 0;
      afterRefresh(service, 1, async () => {
        moves += 1;
        await move(leaving, other);
        await claimOn(leaving, late); // which never had anything in the tree
        await move(coming, root);
      });
      assert.deepEqual(await consumersIn(`in_tree=${root}`), [arrived]);
      assert.equal(moves, 1);
      afterRefresh(service, 1, async () => {
        moves += 1;
        await move(coming, other);
      });
      assert.deepEqual(await consumersIn(`in_tree=${root}&resource_provider=${coming}`), []);
      assert.equal(moves, 2);
      assert.deepEqual(await consumersIn(`in_tree=${other}`), [early, late, arrived].sort());
    } finally {
      await Promise.all([service.close(), otherProcess.close()]);
    }
  });
});
