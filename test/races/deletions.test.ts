import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { openDeletions } from '../../src/claims/deletions.ts';
import type { OwnWrite } from '../../src/fleet/model/own_writes.ts';
import { engines } from '../support/engines.ts';
import { makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const provider = randomUUID();
const consumers = 200;

for (const engine of engines) {
  test(`each of several simultaneous deletions has a correct answer on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const { kysely } = service.database;
      const send = requestsTo(service);
      await makeProvider(send, provider, { VCPU: { total: consumers } });
      const claim = async (uuid: string, amount: number) =>
        (await send('PUT', `/allocations/${uuid}`, newClaim({ [provider]: { VCPU: amount } }))).status;
      const release = async (uuid: string) => (await send('DELETE', `/allocations/${uuid}`)).status;
      const uuids = Array.from({ length: consumers }, () => randomUUID());
      const claimed = await Promise.all(uuids.map((uuid) => claim(uuid, 1)));
      assert.deepEqual(new Set(claimed), new Set([204]));

      // Each consumer twice, and unknown ones in between. The second deletion of a consumer finds no allocations.
      const statuses = await Promise.all(uuids.flatMap((uuid) => [uuid, uuid, randomUUID()]).map(release));
      for (let index = 0; index < statuses.length; index += 3) {
        assert.deepEqual(statuses.slice(index, index + 2).sort(), [204, 404]);
        assert.equal(statuses[index + 2], 404);
      }
      const left = await kysely
        .selectFrom('allocations')
        .select(({ fn }) => fn.countAll<string>().as('count'))
        .executeTakeFirstOrThrow();
      assert.equal(Number(left.count), 0);
      assert.deepEqual(await kysely.selectFrom('consumers').select('uuid').execute(), []);
      const last = randomUUID();
      assert.equal(await claim(last, consumers), 204);

      // The fleet shows at once what was released.
      const released: OwnWrite[] = [];
      const deletions = openDeletions(service.database, { onReleased: (write) => released.push(write) });
      assert.deepEqual([await deletions.delete(last), await deletions.delete(last)], [1, 0]);
      const { id: providerId } = await kysely.selectFrom('resource_providers').select('id').executeTakeFirstOrThrow();
      assert.deepEqual(
        released.map(({ effects }) => effects),
        [[{ providerId, bump: 0, used: [{ classId: 0, delta: -consumers }] }]],
      );
    });
  });
}
