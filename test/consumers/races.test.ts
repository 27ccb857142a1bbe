/**
 * PUT /consumers at the same time as claims, deletions and other programs: no write is lost, and the entity tags stay
 * right.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import pg from 'pg';
import { assertStored } from '../etags/stored_tags.ts';
import { countStrays, insertOldAllocations } from '../manage/old_data.ts';
import { engines, freshDatabase } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { openServiceOn, withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const rounds = 25;

for (const engine of engines) {
  test(`exactly one of several changes of a generation succeeds, by owner or by claim: ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.2');
      const [host, consumer] = [randomUUID(), randomUUID()];
      await makeProvider(send, host, { VCPU: { total: 1000 } });
      accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
      for (let generation = 1; generation <= rounds; generation += 1) {
        const claim = { ...newClaim({ [host]: { VCPU: generation } }), consumer_generation: generation };
        const [first, second] = ['first', 'second'].map((name) => ({
          project_id: `${name} ${generation}`,
          user_id: 'u',
          consumer_type: `T${generation}`,
          consumer_generation: generation,
        }));
        const answers = await Promise.all([
          send('PUT', `/consumers/${consumer}`, first),
          send('PUT', `/allocations/${consumer}`, claim),
          send('PUT', `/consumers/${consumer}`, second),
        ]);
        const done = answers.filter(({ status }) => status < 300);
        assert.equal(done.length, 1, answers.map(({ status, text }) => `${status} ${text}`).join('\n'));
        assert.ok(answers.every(({ status }) => [200, 204, 409].includes(status)));
        const shown = accepted(await send('GET', `/consumers/${consumer}`)).json;
        const held = accepted(await send('GET', `/allocations/${consumer}`)).json;
        assert.equal(at(shown, 'consumer_generation'), generation + 1);
        for (const field of ['project_id', 'user_id', 'consumer_type', 'etag']) {
          assert.equal(at(shown, field), at(held, field), field);
        }
        const [won] = done;
        if (won?.status === 200) assert.deepEqual(won.json, shown);
        else assert.equal(at(held, 'allocations', host, 'resources', 'VCPU'), generation);
        await assertStored(service, `round ${generation}`, false);
      }
    });
  });

  test(`of 32 writers of one generation exactly one succeeds, and the list shows it: ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.2');
      const [host, consumer] = [randomUUID(), randomUUID()];
      await makeProvider(send, host, { VCPU: { total: 1000 } });
      accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
      for (let generation = 1; generation <= 8; generation += 1) {
        const answers = await Promise.all(
          Array.from({ length: 32 }, (_, writer) =>
            send('PUT', `/consumers/${consumer}`, {
              project_id: `writer ${writer}`,
              user_id: 'u',
              consumer_type: 'T',
              consumer_generation: generation,
            }),
          ),
        );
        const pages = await send('GET', `/consumers?resource_provider=${host}`);
        assert.deepEqual(answers.map(({ status }) => status).toSorted(), [
          200,
          ...Array.from({ length: 31 }, () => 409),
        ]);
        const [won] = answers.filter(({ status }) => status === 200);
        assert.deepEqual(at(accepted(pages).json, 'consumers'), [won?.json]);
        for (const { json } of answers) {
          if (json !== won?.json) assert.equal(at(json, 'errors', 0, 'code'), 'placement.concurrent_update');
        }
      }
    });
  });

  test(`a consumer that is deleted at the same time does not come back without allocations: ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.2');
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 1000 } });
      const { id } = await service.database.kysely
        .selectFrom('resource_providers')
        .select('id')
        .executeTakeFirstOrThrow();
      const statuses = new Set<string>();
      for (let round = 0; round < rounds; round += 1) {
        const consumer = randomUUID();
        const isOld = round % 2 === 0;
        if (isOld) await insertOldAllocations(service.database, id, [consumer]);
        else accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
        const known = isOld ? null : 1;
        const owner = { project_id: `q${round}`, user_id: 'u', consumer_type: 'T', consumer_generation: known };
        const emptied = { ...newClaim({}), consumer_generation: known };
        const isByClaim = round % 3 === 0;
        const [changed, gone] = await Promise.all([
          send('PUT', `/consumers/${consumer}`, owner),
          isByClaim ? send('PUT', `/allocations/${consumer}`, emptied) : send('DELETE', `/allocations/${consumer}`),
        ]);
        statuses.add(`${isByClaim ? 'claim' : 'DELETE'} ${changed.status} ${gone.status}`);
        const after = await send('GET', `/consumers/${consumer}`);
        assert.equal(after.status, gone.status === 204 ? 404 : 200);
      }
      // A claim has the generation, so it fails after the change. A DELETE deletes whatever exists.
      for (const one of statuses) assert.match(one, /^(claim (404 204|200 409)|DELETE (404|200) 204)$/);
      assert.deepEqual(await countStrays(service.database), { allocations: 0, consumers: 0 });
    });
  });

  test(`If-Match is checked against the stored content, even at the same generation: ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.6');
      const [host, consumer] = [randomUUID(), randomUUID()];
      await makeProvider(send, host, { VCPU: { total: 1000 } });
      accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
      const put = async (etag: unknown) => {
        const seen = accepted(await send('GET', `/consumers/${consumer}`)).json;
        const putIfMatch = async (path: string, body: object) => {
          const headers = {
            'x-auth-token': 'admin',
            'openstack-api-version': 'placement 2.6',
            'content-type': 'application/json',
            'if-match': String(etag),
          };
          return (await service.app.request(path, { method: 'PUT', headers, body: JSON.stringify(body) })).status;
        };
        const consumer_generation = at(seen, 'consumer_generation');
        const term = await putIfMatch(`/consumers/${consumer}/term`, { expires_in: 100, consumer_generation });
        const end = at((await send('GET', `/consumers/${consumer}`)).json, 'expires_at');
        assert.equal(end === at(seen, 'expires_at'), term !== 200);
        const owner = await putIfMatch(`/consumers/${consumer}`, { ...Object(seen), project_id: 'elsewhere' });
        assert.equal(owner, term);
        return owner;
      };
      const etag = at(accepted(await send('GET', `/consumers/${consumer}`)).json, 'etag');
      await service.database.kysely
        .updateTable('allocations')
        .set({ used: 2 })
        .where('consumer_id', '=', consumer)
        .execute();
      assert.equal(await put(etag), 412);
      const now = at(accepted(await send('GET', `/consumers/${consumer}`)).json, 'etag');
      assert.notEqual(now, etag);
      assert.equal(await put(now), 200);
      assert.equal(await put('*'), 200);
      await assertStored(service, 'afterwards', false);
    });
  });
}

test('the change waits for a lock of another program, and delays no other request', async () => {
  const fresh = await freshDatabase('postgresql');
  const service = await openServiceOn(fresh, { placementDatabase: { maxPoolSize: 1 } });
  const other = new pg.Client({ connectionString: fresh.config.connection });
  await other.connect();
  try {
    const send = requestsTo(service, 'placement 2.2');
    const [host, locked, free] = [randomUUID(), randomUUID(), randomUUID()];
    await makeProvider(send, host, { VCPU: { total: 1000 } });
    for (const consumer of [locked, free]) {
      accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
    }
    const owner = { project_id: 'q', user_id: 'u', consumer_type: 'T', consumer_generation: 1 };
    await other.query('begin');
    await other.query('select from consumers where uuid = $1 for update', [locked]);
    let isDone = false;
    const waiting = send('PUT', `/consumers/${locked}`, owner).finally(() => {
      isDone = true;
    });
    await until('the change waits', async () => {
      // A transaction sees the activity as of its first read.
      await other.query('select pg_stat_clear_snapshot()');
      const { rows } = await other.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows.length > 0;
    });
    accepted(await send('PUT', `/consumers/${free}`, owner));
    accepted(await send('GET', '/consumers'));
    assert.equal(isDone, false);
    await other.query('commit');
    assert.equal(accepted(await waiting).status, 200);
  } finally {
    await other.end();
    await service.close();
    await fresh.drop();
  }
});
