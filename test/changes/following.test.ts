/** Requests that wait for changes, and streams of events. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { sql } from 'kysely';
import type { PlacementService } from '../../src/start/service.ts';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { anyEngine, engines } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { serve } from './serving.ts';
import { openStream } from './stream.ts';

const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 2.5' };

/** A promise of 'open' after some time by the real clock, also where timers are mocked. */
const sleepInReal = (ms: number): Promise<'open'> =>
  new Promise((resolve) => {
    new Worker(`setTimeout(() => {}, ${ms})`, { eval: true }).on('exit', () => resolve('open'));
  });

/**
 * Calls back while timers are mocked. No statement is under way when that begins: its timer, which is a real one, could not be cleared
 * any more, and would keep the process from ending. Where the test fails, the server needs real timers for its end.
 */
async function whileMocked(
  { mock: { timers } }: TestContext,
  { database }: PlacementService,
  use: (tick: (ms: number) => void) => Promise<void>,
): Promise<void> {
  await until('no statement is under way', () => {
    const { open, idle } = database.connections();
    return idle === open;
  });
  timers.enable({ apis: ['setInterval', 'setTimeout'] });
  try {
    await use((ms) => timers.tick(ms));
  } finally {
    timers.reset();
  }
}

const usagesOf = (uuid: string) => [{ resource_provider: uuid, parts: ['usages'] }];

for (const engine of engines) {
  test(`a request waits for the first change of its parts, or until its time has passed, on ${engine}`, () =>
    serve(engine, {}, async (url, service) => {
      const send = requestsTo(service, 'placement 2.5');
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 8 } });
      const present = async () => String(at((await send('GET', '/changes')).json, 'next'));
      const next = await present();
      const wait = (seconds: number, token = next, signal?: AbortSignal) =>
        fetch(`${url}/changes?since=${token}&parts=usages`, {
          headers: { ...headers, prefer: `wait=${seconds}` },
          ...(signal === undefined ? {} : { signal }),
        });
      const waiting = [wait(50), wait(50)];
      await until('two requests wait', () => followersOf(service) === 2);
      accepted(await send('PUT', `/resource_providers/${host}`, { name: 'renamed' }));
      await sleep(300);
      assert.equal(followersOf(service), 2, 'another part does not end the wait');
      accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
      const startedMs = performance.now();
      for (const answer of await Promise.all(waiting)) {
        assert.equal(answer.headers.get('preference-applied'), 'wait=50');
        assert.equal(answer.headers.get('cache-control'), 'no-cache');
        assert.deepEqual(at(await answer.json(), 'changes'), usagesOf(host));
      }
      assert.ok(performance.now() - startedMs < 40_000, 'they do not wait for their 50 s');
      assert.equal(followersOf(service), 0);

      // Earlier changes are reported at once. When the time is over the answer has no changes, and the token of the present state.
      assert.deepEqual(at(await (await wait(50)).json(), 'changes'), usagesOf(host));
      let none: unknown;
      let attempts = 0;
      // On a busy machine the second may be over before the write is seen: then the test retries.
      await until('the token moves although no part of interest changed', async () => {
        const before = await present();
        let isOver = false;
        const waited = wait(1, before).finally(() => {
          isOver = true;
        });
        await until('a request waits', () => isOver || followersOf(service) === 1);
        accepted(await send('PUT', `/resource_providers/${host}`, { name: `once more ${attempts++}` }));
        none = await (await waited).json();
        return at(none, 'next') !== before;
      });
      assert.deepEqual(none, { changes: [], next: await present() });

      // A client that leaves is forgotten.
      const leaving = new AbortController();
      const left = wait(50, await present(), leaving.signal).catch(() => {});
      await until('a request waits', () => followersOf(service) === 1);
      leaving.abort();
      await left;
      await until('nothing waits', () => followersOf(service) === 0);
    }));

  test(`a stream sends each change with a token that resumes it, on ${engine}`, () =>
    serve(engine, {}, async (url, service) => {
      const send = requestsTo(service, 'placement 2.5');
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 8 } });
      const first = await openStream(`${url}/changes?parts=usages,traits`, headers);
      assert.equal(first.headers.get('content-type'), 'text/event-stream');
      assert.equal(first.headers.get('openstack-api-version'), 'placement 2.5');
      const begin = await first.next();
      assert.deepEqual(begin.data, { changes: [], next: begin.id });
      const claim = async () =>
        accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
      await claim();
      const event = await first.next();
      assert.deepEqual(event.data, { changes: usagesOf(host), next: event.id });
      first.leave();
      await until('the stream has ended', () => followersOf(service) === 0);

      await claim();
      accepted(await send('PUT', '/traits/CUSTOM_NEW'));
      const second = await openStream(`${url}/changes?parts=usages,traits&since=${begin.id}`, {
        ...headers,
        'last-event-id': event.id ?? '',
      });
      const resumed = await second.next();
      assert.deepEqual(at(resumed.data, 'changes'), [...usagesOf(host), { traits: true }]);
      second.leave();
      // The token of an event is one of requests as well.
      const { json } = await send('GET', `/changes?since=${event.id}&parts=usages`);
      assert.deepEqual(at(json, 'changes'), [...usagesOf(host), { traits: true }]);
    }));
}

test('a client that disconnects while the database is slow keeps no seat', () =>
  serve('postgresql', {}, async (url, service) => {
    const { kysely } = service.database;
    const next = String(at((await requestsTo(service, 'placement 2.5')('GET', '/changes')).json, 'next'));
    const leaving = new AbortController();
    const sent = await kysely.transaction().execute(async (other) => {
      await sql`lock table provider_changes in access exclusive mode`.execute(other);
      const waiting = { ...headers, prefer: 'wait=50' };
      const poll = fetch(`${url}/changes?since=${next}`, { headers: waiting, signal: leaving.signal });
      const events = { ...headers, accept: 'text/event-stream' };
      const stream = fetch(`${url}/changes?since=${next}`, { headers: events, signal: leaving.signal });
      const sent = Promise.allSettled([poll, stream]);
      await until('the requests wait for the database', async () => {
        const { rows } = await sql`select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(kysely);
        return rows.length > 0;
      });
      leaving.abort();
      await sleep(300); // until the service has noticed it
      return { sent };
    });
    await sent.sent;
    const startedMs = performance.now();
    await requestsTo(service, 'placement 2.5')('GET', '/changes');
    await until('nothing follows', () => followersOf(service) === 0);
    assert.ok(performance.now() - startedMs < 40_000, 'the request does not wait for its 50 s');
  }));

test('streams beyond the limit are refused, and all end with the process', () =>
  serve(anyEngine, { changes: { maxFollowers: 2 } }, async (url, service) => {
    const streams = [await openStream(`${url}/changes`, headers), await openStream(`${url}/changes`, headers)];
    for (const stream of streams) await stream.next();
    const refused = await fetch(`${url}/changes`, { headers: { ...headers, accept: 'text/event-stream' } });
    assert.equal(refused.status, 429);
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
    assert.match(await refused.text(), /2 clients follow changes/);
    streams[0]?.leave();
    await until('there is a seat', () => followersOf(service) === 1);
    const third = await openStream(`${url}/changes`, headers);
    await third.next();
    service.endWaits();
    assert.equal(await third.ended(), 'in order');
    assert.equal(await streams[1]?.ended(), 'in order');
    const late = await openStream(`${url}/changes`, headers);
    assert.equal(await late.ended(), 'in order');
  }));

test('a stream without changes sends a comment every 15 seconds, and ends after an hour', (t) =>
  serve(anyEngine, {}, (url, service) =>
    whileMocked(t, service, async (tick) => {
      const stream = await openStream(`${url}/changes`, headers);
      await stream.next();
      for (const _ of [1, 2]) {
        tick(15_000);
        assert.equal(await stream.block(), ':');
      }
      tick(3_600_000 - 2 * 15_000 - 1);
      const late = stream.ended();
      assert.equal(await Promise.race([late, sleepInReal(100)]), 'open');
      tick(1);
      assert.equal(await late, 'in order');
    }),
  ));

test('a stream ends with an error event once the policy forbids it', async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-policy-'));
  const policyFile = path.join(folder, 'policy.yaml');
  await writeFile(policyFile, '');
  try {
    await serve(anyEngine, { osloPolicy: { policyFile } }, (url, service) =>
      whileMocked(t, service, async (tick) => {
        const stream = await openStream(`${url}/changes`, headers);
        await stream.next();
        await writeFile(policyFile, '"placement:changes:list": "!"\n');
        await until(
          'the policy is read',
          async () => (await requestsTo(service, 'placement 2.5')('GET', '/changes')).status === 403,
        );
        tick(15_000);
        const event = await stream.next();
        assert.deepEqual([event.event, at(event.data, 'status')], ['error', 403]);
        assert.equal(await stream.ended(), 'in order');
      }),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a stream ends when the token of Keystone expires', (t) =>
  withStandIn((standIn) => {
    const byKeystone = { api: { authStrategy: 'keystone' }, keystoneAuthtoken: settingsFor(standIn) } as const;
    return serve(anyEngine, byKeystone, (url, service) =>
      whileMocked(t, service, async (tick) => {
        const token = standIn.issue({ roles: ['admin'], lifetime: 600 });
        const stream = await openStream(`${url}/changes`, { ...headers, 'x-auth-token': token });
        await stream.next();
        tick(500_000);
        const ended = stream.ended();
        assert.equal(await Promise.race([ended, sleepInReal(100)]), 'open');
        tick(100_000);
        assert.equal(await ended, 'in order');
      }),
    );
  }));

test('a stream whose log was truncated ends with an error event', () =>
  serve('postgresql', {}, async (url, service) => {
    const stream = await openStream(`${url}/changes`, headers);
    await stream.next();
    await service.database.kysely.deleteFrom('resource_provider_traits').execute();
    await sql`truncate resource_provider_traits`.execute(service.database.kysely);
    const event = await stream.next();
    assert.deepEqual([event.event, event.data], ['error', { status: 410, code: 'placement.changes_expired' }]);
    assert.equal(await stream.ended(), 'in order');
  }));

test('a client that does not read is cut off, and other clients get the changes', () =>
  serve(anyEngine, {}, async (url, service) => {
    const send = requestsTo(service, 'placement 2.5');
    const { port } = new URL(url);
    const socket = net.connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    const lines = ['GET /changes HTTP/1.1', 'host: localhost', 'accept: text/event-stream', 'x-auth-token: admin'];
    socket.write(`${[...lines, 'openstack-api-version: placement 2.5'].join('\r\n')}\r\n\r\n`);
    socket.pause();
    const reader = await openStream(`${url}/changes`, headers);
    await reader.next();
    await until('two follow', () => followersOf(service) === 2);
    // Some 300 kB for each refresh.
    const { kysely } = service.database;
    await sql`insert into resource_providers (uuid, name, generation)
      select gen_random_uuid()::text, 'p' || n, 0 from generate_series(1, 2900) as n`.execute(kysely);
    for (let round = 0; followersOf(service) === 2 && round < 100; round += 1) {
      await sql`insert into provider_changes (provider_id, whole, class_ids, used_deltas)
        select id, false, '{0}', '{0}' from resource_providers`.execute(kysely);
      const event = await reader.next();
      assert.ok(event.id !== undefined);
    }
    assert.equal(followersOf(service), 1);
    assert.equal((await send('GET', '/changes')).status, 200);
    socket.destroy();
    reader.leave();
  }));

const followersOf = ({ followers }: PlacementService): number => followers.size;
