/** A record of a consumer without allocations, as OpenStack Placement may leave it behind. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

test('DELETE of its allocations is a 404, and leaves it', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const { kysely } = service.database;
    const send = requestsTo(service, 'placement 2.6');
    const [host, empty, other] = [randomUUID(), randomUUID(), randomUUID()];
    await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await send('PUT', `/allocations/${other}`, newClaim({ [host]: { VCPU: 1 } })));
    await sql`insert into consumers (uuid, project_id, user_id, generation)
      select ${empty}, project_id, user_id, 7 from consumers where uuid = ${other}`.execute(kysely);
    for (const version of ['1.0', '1.39', '2.6']) {
      // Together with one that has something, so that both are in one batch.
      const [refused, done] = await Promise.all([
        send('DELETE', `/allocations/${empty}`, undefined, `placement ${version}`),
        send('DELETE', `/allocations/${other}`),
      ]);
      assert.equal(refused.status, 404);
      assert.match(refused.text, /No allocations for consumer/);
      assert.equal(done.status, 204);
      const { json } = accepted(await send('GET', `/consumers/${empty}`));
      assert.equal(at(json, 'consumer_generation'), 7);
      assert.equal((await send('GET', `/consumers/${other}`)).status, 404);
      accepted(await send('PUT', `/allocations/${other}`, newClaim({ [host]: { VCPU: 1 } })));
    }
  });
});
