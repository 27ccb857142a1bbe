/** GET /changes: what it tells of each write, and how tokens are read. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { engines } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { followFrom } from './follow.ts';

const everything = ['provider', 'inventories', 'traits', 'aggregates', 'usages'];

for (const engine of engines) {
  test(`each write is reported as a change that names what to read again, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.5');
      const [host, child, aggregate] = [randomUUID(), randomUUID(), randomUUID()];
      const run = (statement: string) => sql.raw(statement).execute(service.database.kysely);
      const feed = await followFrom(send);

      assert.deepEqual(await feed(), []);
      await makeProvider(send, host, {});
      assert.deepEqual(await feed(), [{ resource_provider: host, parts: everything }]);
      const put = async (path: string, body: object) =>
        accepted(await send('PUT', `/resource_providers/${host}${path}`, body));
      const generation = async () => at((await send('GET', `/resource_providers/${host}`)).json, 'generation');
      const guarded = async (body: object) => ({ resource_provider_generation: await generation(), ...body });
      const only = (...parts: string[]) => [{ resource_provider: host, parts }];

      await put('/inventories', await guarded({ inventories: { VCPU: { total: 8 } } }));
      assert.deepEqual(await feed(), only('inventories', 'usages'));
      await put('/inventories/VCPU', await guarded({ total: 16 }));
      assert.deepEqual(await feed(), only('inventories'));
      await put('/traits', await guarded({ traits: ['HW_CPU_X86_AVX2'] }));
      assert.deepEqual(await feed(), only('traits'));
      await put('/aggregates', await guarded({ aggregates: [aggregate] }));
      assert.deepEqual(await feed(), only('aggregates'));
      const consumer = randomUUID();
      accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 2 } })));
      assert.deepEqual(await feed(), only('usages'));
      accepted(await send('DELETE', `/allocations/${consumer}`));
      assert.deepEqual(await feed(), only('usages'));
      await put('', { name: 'renamed' });
      assert.deepEqual(await feed(), only('provider'));
      await put('', { name: 'renamed' });
      assert.deepEqual(await feed(), [], 'nothing has another value');

      accepted(await send('POST', '/resource_providers', { uuid: child, name: 'child' }));
      await feed();
      accepted(await send('PUT', `/resource_providers/${child}`, { name: 'child', parent_provider_uuid: host }));
      assert.deepEqual(await feed(), [{ resource_provider: child, parts: ['provider'] }]);
      accepted(await send('PUT', `/resource_providers/${child}`, { name: 'child', parent_provider_uuid: null }));
      accepted(await send('DELETE', `/resource_providers/${child}`));
      assert.deepEqual(await feed(), [{ resource_provider: child, deleted: true }]);
      accepted(await send('POST', '/resource_providers', { uuid: child, name: 'child' }));
      accepted(await send('DELETE', `/resource_providers/${child}`));
      accepted(await send('POST', '/resource_providers', { uuid: child, name: 'again' }));
      assert.deepEqual(await feed(), [{ resource_provider: child, parts: everything }]);

      accepted(await send('PUT', '/traits/CUSTOM_A'));
      assert.deepEqual(await feed(), [{ traits: true }]);
      accepted(await send('PUT', '/resource_classes/CUSTOM_B'));
      assert.deepEqual(await feed(), [{ resource_classes: true }]);
      await put('/inventories', await guarded({ inventories: { CUSTOM_B: { total: 8 } } }));
      await feed();
      await run(`update resource_classes set name = 'CUSTOM_C' where name = 'CUSTOM_B'`);
      assert.deepEqual(await feed(), [...only('inventories', 'usages'), { resource_classes: true }]);

      // By SQL, a middle provider leaves its tree; the rows of those below it stay as they are, and yet their root is another one.
      const [top, middle, bottom] = [randomUUID(), randomUUID(), randomUUID()];
      for (const [uuid, parent] of [[top], [middle, top], [bottom, middle]]) {
        accepted(
          await send('POST', '/resource_providers', {
            uuid,
            name: uuid,
            ...(parent && { parent_provider_uuid: parent }),
          }),
        );
      }
      await feed();
      await run(`update resource_providers set parent_provider_id = null where uuid = '${middle}'`);
      assert.deepEqual(await feed(), [
        { resource_provider: middle, parts: ['provider'] },
        { resource_provider: bottom, parts: ['provider'] },
      ]);
      await run(`update traits set name = 'CUSTOM_RENAMED' where name = 'CUSTOM_A'`);
      assert.deepEqual(await feed(), [{ traits: true }]);

      // By SQL: another UUID, and times and generations alone.
      const renamed = randomUUID();
      await run(`update resource_providers set uuid = '${renamed}' where uuid = '${child}'`);
      assert.deepEqual(await feed(), [
        { resource_provider: renamed, parts: everything },
        { resource_provider: child, deleted: true },
      ]);
      await run('update resource_providers set generation = generation + 1, updated_at = now()');
      assert.deepEqual(await feed(), []);
      await run('truncate resource_provider_traits');
      await feed.isExpired();
    });
  });

  test(`parts can be chosen, and the token moves although they do not change, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.5');
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 8 } });
      const feed = await followFrom(send, 'traits,usages');
      const before = feed.token();
      accepted(await send('PUT', `/resource_providers/${host}`, { name: 'renamed' }));
      assert.deepEqual(await feed(), []);
      assert.notEqual(feed.token(), before);
      accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 2 } })));
      assert.deepEqual(await feed(), [{ resource_provider: host, parts: ['usages'] }]);
      const all = await send('GET', `/changes?since=${before}`);
      assert.deepEqual(at(all.json, 'changes'), [{ resource_provider: host, parts: ['provider', 'usages'] }]);
      // Two requests with the same token get the same changes.
      assert.deepEqual((await send('GET', `/changes?since=${before}`)).json, all.json);
    });
  });

  test(`changes that are no longer in memory are read from the log, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.5');
      const [host, gone] = [randomUUID(), randomUUID()];
      await makeProvider(send, host, { VCPU: { total: 8 } });
      // Nothing is recorded before a client asks.
      const token = (await send('GET', `/resource_providers/${host}`)).headers.get('placement-changes-token');
      await makeProvider(send, gone, { VCPU: { total: 8 } });
      accepted(await send('DELETE', `/resource_providers/${gone}`));
      accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 2 } })));
      accepted(await send('PUT', '/traits/CUSTOM_A'));
      const { json } = accepted(await send('GET', `/changes?since=${token}`));
      assert.deepEqual(at(json, 'changes'), [
        { resource_provider: host, parts: ['usages'] },
        { resource_provider: gone, deleted: true },
        { traits: true },
      ]);
      assert.deepEqual(at((await send('GET', `/changes?since=${at(json, 'next')}`)).json, 'changes'), []);
      await sql`update provider_changes_horizon set xid = pg_current_xact_id()`.execute(service.database.kysely);
      await isExpired(send, token ?? '');
    });
  });

  test(`wrong tokens and parameters are refused, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, 'placement 2.5');
      const { json } = accepted(await send('GET', '/changes'));
      const next = String(at(json, 'next'));
      assert.ok(next.length < 60, next);
      const wrong = [
        '',
        'x',
        next.slice(0, -1),
        next.slice(4),
        `${next}A`,
        'A'.repeat(40),
        `${next}=`,
        'A'.repeat(5000),
      ];
      for (const token of wrong) {
        const { status, text } = await send('GET', `/changes?since=${token}`);
        assert.equal(status, 400, token);
        assert.match(text, /since is not a token/);
      }
      for (const parts of ['', 'inventories,', 'generation', 'Inventories', 'traits;usages']) {
        const { status, text } = await send('GET', `/changes?parts=${parts}`);
        assert.equal(status, 400, parts);
        assert.match(text, /parts/);
      }
      assert.equal((await send('GET', '/changes?limit=5')).status, 400);
      assert.equal((await send('GET', '/changes', undefined, 'placement 2.4')).status, 404);
      const old = await send('GET', '/resource_providers', undefined, 'placement 2.4');
      assert.equal(old.headers.get('placement-changes-token'), null);
      assert.equal((await send('POST', '/changes')).status, 405);
      for (const wait of ['61', '-1', 'a', '', '1.5', '1e1']) {
        const response = await service.app.request('/changes', { headers: { ...headers, prefer: `wait=${wait}` } });
        assert.equal(response.status, 400, wait);
      }
      const waited = await service.app.request(`/changes?since=${next}`, {
        headers: { ...headers, prefer: 'respond-async, Wait="0"; a=b' },
      });
      assert.equal(waited.headers.get('preference-applied'), 'wait=0');
      assert.deepEqual(await waited.json(), { changes: [], next });
    });
  });
}

const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 2.5' };

async function isExpired(send: Send, token: string): Promise<void> {
  const { status, json, headers: answered } = await send('GET', `/changes?since=${token}`);
  assert.deepEqual([status, at(json, 'errors', 0, 'code')], [410, 'placement.changes_expired']);
  assert.match(answered.get('retry-after') ?? '', /^[1-5]$/);
}

test('the token of one database is refused by another', async () => {
  await withTestService('postgresql', {}, async (one) => {
    const token = String(at((await requestsTo(one, 'placement 2.5')('GET', '/changes')).json, 'next'));
    await withTestService('postgresql', {}, (other) => isExpired(requestsTo(other, 'placement 2.5'), token));
  });
});
