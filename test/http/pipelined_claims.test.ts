/** Claims followed by a refused request on the same connection: the client must get the answers to its claims. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { test } from 'node:test';
import { sql } from 'kysely';
import { listen } from '../../src/http/server/listen.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine, engines } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, newestVersion, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';
const consumers = ['1b1d3c4e-1111-4222-8333-444455556666', '1b1d3c4e-1111-4222-8333-444455556667'];

/** Sends a claim for each consumer and then an invalid request. Reads until the server closes the connection. */
async function claimThenFail(service: PlacementService, meanwhile: () => Promise<void>): Promise<readonly number[]> {
  const { url, close } = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
  try {
    const client = net.connect(Number(new URL(url).port), '127.0.0.1');
    let text = '';
    client.setEncoding('latin1').on('data', (data) => {
      text += data;
    });
    const closed = new Promise<void>((resolve, reject) => client.once('close', () => resolve()).once('error', reject));
    const body = JSON.stringify(newClaim({ [host]: { VCPU: 1 } }));
    const claims = consumers.map((consumer) =>
      [
        `PUT /allocations/${consumer} HTTP/1.1`,
        'Host: localhost',
        'X-Auth-Token: admin',
        'OpenStack-API-Version: placement 1.39',
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        '',
        body,
      ].join('\r\n'),
    );
    client.write(`${claims.join('')}GET / HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere\r\n\r\n`);
    await Promise.all([closed, meanwhile()]);
    return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  } finally {
    await close();
  }
}

async function assertClaimed(service: PlacementService): Promise<void> {
  for (const consumer of consumers) {
    const { json } = accepted(await requestsTo(service)('GET', `/allocations/${consumer}`));
    assert.deepEqual(at(json, 'allocations', host, 'resources'), { VCPU: 1 });
  }
}

for (const engine of engines) {
  test(`on ${engine} both claims are answered, and then the invalid request`, () =>
    withTestService(engine, {}, async (service) => {
      await makeProvider(requestsTo(service), host, { VCPU: { total: 8 } });
      assert.deepEqual(await claimThenFail(service, async () => {}), [204, 204, 400]);
      await assertClaimed(service);
    }));
}

test('claims that wait for a lock are answered, too', () =>
  withTestService('postgresql', {}, async (service) => {
    await makeProvider(requestsTo(service), host, { VCPU: { total: 8 } });
    const { kysely, unlimited } = service.database;
    const { promise: mayEnd, resolve: letEnd } = Promise.withResolvers<void>();
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
    const holder = unlimited.transaction().execute(async (transaction) => {
      await sql`select from resource_providers where uuid = ${host} for update`.execute(transaction);
      lock();
      await mayEnd;
    });
    await locked;
    const waiting = sql<{ count: number }>`select count(*)::integer as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    const statuses = await claimThenFail(service, async () => {
      await until('a claim waits', async () => (await waiting.execute(kysely)).rows[0]?.count !== 0);
      letEnd();
      await holder;
    });
    assert.deepEqual(statuses, [204, 204, 400]);
    await assertClaimed(service);
  }));

test('many claims that wait, sent at once on one connection, make Node.js warn of nothing', () =>
  withTestService(anyEngine, {}, async (service) => {
    const warnings: string[] = [];
    const note = ({ message }: Error) => void warnings.push(message);
    process.on('warning', note);
    const { url, close } = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
    const client = net.connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    try {
      await makeProvider(requestsTo(service), host, { VCPU: { total: 8, max_unit: 8 } });
      await requestsTo(service)('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 8 } }));
      const { allocations: _, ...owner } = newClaim({});
      const body = JSON.stringify({ ...owner, candidates: 'resources=VCPU:1' });
      const headers = ['Host: localhost', 'X-Auth-Token: admin', `OpenStack-API-Version: placement ${newestVersion}`];
      const more = ['Prefer: wait=60', 'Content-Type: application/json', `Content-Length: ${body.length}`, '', body];
      for (let count = 0; count < 15; count += 1) {
        client.write([`PUT /allocations/${randomUUID()} HTTP/1.1`, ...headers, ...more].join('\r\n'));
      }
      await until('they wait', () => service.waiting.size === 15);
      assert.deepEqual(warnings, []);
    } finally {
      process.off('warning', note);
      client.destroy();
      service.endWaits();
      await close();
    }
  }));
