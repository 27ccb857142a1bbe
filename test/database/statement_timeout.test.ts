/** A statement that the database does not answer costs its request and nothing else. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import net, { type Socket } from 'node:net';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { pino } from 'pino';
import { openService, type PlacementService } from '../../src/service.ts';
import { withFreshDatabase } from '../engines.ts';
import { untilWaiting } from '../races/two_connections.ts';
import { makeProvider, newClaim, requestsTo, type Send } from '../requests.ts';
import { testConfig } from '../services.ts';

const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';

const stock = { VCPU: { total: 100 } };

const claim = (send: Send, consumer: string = randomUUID(), providers: readonly string[] = [host]) =>
  send('PUT', `/allocations/${consumer}`, newClaim(Object.fromEntries(providers.map((uuid) => [uuid, { VCPU: 1 }]))));

type Place = {
  readonly service: PlacementService;
  readonly send: Send;
  /** Somebody else's connection to the database. */
  readonly other: pg.Client;
  /** What the service logged. */
  readonly entries: readonly Readonly<Record<string, unknown>>[];
};

/** A service with one connection to the database, on which statements may take two seconds, and with a provider. */
async function withService(
  use: (place: Place) => Promise<void>,
  reachBy: (url: string) => string = (url) => url,
): Promise<void> {
  await withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
    const limits = { maxPoolSize: 1, statementTimeout: 2, slowStatementMs: 300 };
    const placementDatabase = { ...testConfig().placementDatabase, ...limits, connection: reachBy(connection) };
    const entries: Record<string, unknown>[] = [];
    const logger = pino({ level: 'warn' }, { write: (line) => void entries.push(JSON.parse(line)) });
    const service = await openService(testConfig({ placementDatabase }), { logger });
    const other = new pg.Client({ connectionString: connection });
    try {
      await other.connect();
      const send = requestsTo(service);
      await makeProvider(send, host, stock);
      await use({ service, send, other, entries });
    } finally {
      await other.end();
      await service.close();
    }
  });
}

suite('a statement that takes too long', () => {
  test('is a 503, wherever in a pipeline it is, and the connection goes on', () =>
    withService(async ({ service, send, other, entries }) => {
      const backend = async () =>
        (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(service.database.kysely)).rows;
      const before = await backend();
      await other.query('begin');
      await other.query('lock table resource_providers in access exclusive mode');
      const name = randomUUID();
      const answers = await Promise.all([
        send('GET', '/resource_providers'),
        send('POST', '/resource_providers', { name }),
        send('PUT', `/resource_providers/${host}/traits`, { resource_provider_generation: 1, traits: [] }),
        claim(send),
        send('GET', '/resource_providers'),
      ]);
      await other.query('commit');
      for (const { status, headers: got, text } of answers) {
        assert.equal(status, 503, text);
        assert.equal(got.get('retry-after'), '1');
        assert.match(text, /did not answer in time/);
      }
      const listed = await send('GET', '/resource_providers');
      assert.equal(listed.status, 200);
      assert.ok(!listed.text.includes(name), 'nothing of it was done');
      assert.equal((await claim(send)).status, 204);
      assert.deepEqual(await backend(), before, 'by the same connection');
      assert.ok(entries.some(({ msg }) => msg === 'Slow statement'));
    }));

  test('is a 503 as well where the role may wait for no lock as long as that', () =>
    withService(
      async ({ send, other }) => {
        await other.query('begin; select from resource_providers for update');
        for (const { status, headers, text } of [
          await claim(send),
          await send('PUT', `/resource_providers/${host}`, { name: 'renamed' }),
          await send('DELETE', `/resource_providers/${host}`),
        ]) {
          assert.equal(status, 503, text);
          assert.equal(headers.get('retry-after'), '1');
          assert.equal(headers.get('openstack-api-version'), 'placement 1.39');
          assert.match(text, /did not answer in time/);
        }
        await other.query('rollback');
        assert.equal((await claim(send)).status, 204);
      },
      (url) => `${url}?options=${encodeURIComponent('-c lock_timeout=200ms')}`,
    ));

  test('that claims wait for is logged with the ids of all of them, and a claim that lost is counted', () =>
    withService(async ({ send, other, entries }) => {
      assert.equal((await claim(send)).status, 204, 'the owners are known');
      await other.query(`
        create function dawdle() returns trigger language plpgsql as 'begin perform pg_sleep(0.4); return null; end';
        create trigger dawdle after insert on allocations execute function dawdle()`);
      await other.query('begin; update resource_providers set generation = generation + 1');
      const first = claim(send);
      await untilWaiting(other);
      const others = [claim(send), claim(send)];
      await sleep(400);
      // The first one loses its guard, and is written again together with those that came meanwhile.
      await other.query('commit');
      const answers = await Promise.all([first, ...others]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [204, 204, 204],
      );
      const ids = answers.map(({ headers: got }) => got.get('x-openstack-request-id'));
      const slow = entries.filter(({ msg }) => msg === 'Slow statement');
      assert.deepEqual([slow.at(0)?.requestId, slow.at(0)?.requestIds], [ids[0], undefined]);
      assert.deepEqual(slow.at(1)?.requestIds, ids);
      // The second was in a transaction, whose end waited for it.
      assert.deepEqual(
        slow.map(({ sql }) => String(sql).split(' ')[0]),
        ['with', 'with', 'commit'],
      );
      for (const { ms } of slow) assert.ok(Number(ms) >= 300);
      const metrics = await send('GET', '/metrics');
      assert.match(metrics.text, /^placement_claims_total\{outcome="retried"\} 1$/m);
      assert.match(metrics.text, /^placement_claims_total\{outcome="written"\} 4$/m);
    }));

  test('that claims on one provider wait for in vain is waited for once', () =>
    withService(async ({ send, other, entries }) => {
      assert.equal((await claim(send)).status, 204, 'the owners are known');
      await other.query('begin; select from resource_providers for update');
      const first = claim(send);
      await untilWaiting(other);
      const others = [claim(send), claim(send), claim(send)];
      const answers = await Promise.all([first, ...others]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [503, 503, 503, 503],
      );
      // The first, then the three together and briefly, then one of them, as long as it may.
      const waits = entries
        .filter(({ msg }) => msg === 'Slow statement')
        .map(({ ms }) => Math.round(Number(ms) / 1000));
      assert.equal(waits.length, 3, `${waits}`);
    }));

  test('that claims wait for in vain, for a host, costs those nothing that share another provider with them', () =>
    withService(async ({ send, other, entries }) => {
      const [storage, free] = [randomUUID(), randomUUID()];
      for (const uuid of [storage, free]) await makeProvider(send, uuid, stock);
      assert.equal((await claim(send)).status, 204, 'the owners are known');
      await other.query(`begin; select from resource_providers where uuid = '${host}' for update`);
      // The first goes by itself, since nobody writes yet, and the others together.
      const hosts = [[free], [host, storage], [host, storage], [free, storage], [storage, free]];
      const answers = await Promise.all(hosts.map((providers) => claim(send, randomUUID(), providers)));
      assert.deepEqual(
        answers.map(({ status }) => status),
        [204, 503, 503, 204, 204],
      );
      // All together and briefly, then one of them, as long as it may.
      const waits = entries.filter(({ msg }) => msg === 'Slow statement').map(({ ms }) => Number(ms));
      assert.equal(waits.length, 2, `${waits}`);
    }));

  test('that deletions of one consumer wait for in vain is waited for once', () =>
    withService(async ({ send, other, entries }) => {
      const [held, free] = [randomUUID(), randomUUID()];
      for (const consumer of [held, free]) assert.equal((await claim(send, consumer)).status, 204);
      await other.query(`begin; select from consumers where uuid = '${held}' for update`);
      // The first goes by itself, since nobody deletes yet, and the others together.
      const first = send('DELETE', `/allocations/${randomUUID()}`);
      const others = [held, held, free].map((consumer) => send('DELETE', `/allocations/${consumer}`));
      const answers = await Promise.all([first, ...others]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [404, 503, 503, 204],
      );
      // All together and briefly, then one of them, as long as it may.
      const waits = entries.filter(({ msg, sql: text }) => msg === 'Slow statement' && /locked as/.test(String(text)));
      assert.equal(waits.length, 2, `${waits.map(({ ms }) => ms)}`);
    }));

  test('that deletions wait for is logged with the ids of those that it was for', () =>
    withService(async ({ send, other, entries }) => {
      const consumers = [randomUUID(), randomUUID(), randomUUID()];
      for (const consumer of consumers) assert.equal((await claim(send, consumer)).status, 204);
      await other.query(`
        create function dawdle() returns trigger language plpgsql as 'begin perform pg_sleep(0.4); return null; end';
        create trigger dawdle after delete on allocations execute function dawdle()`);
      const [first = '', ...others] = consumers;
      const remove = (consumer: string) => send('DELETE', `/allocations/${consumer}`);
      const answers = await Promise.all([remove(first), sleep(150).then(() => Promise.all(others.map(remove)))]);
      const [alone, together] = [answers[0], answers[1]];
      const idOf = ({ headers: got }: { readonly headers: Headers }) => got.get('x-openstack-request-id');
      const slow = entries.filter(
        ({ msg, sql: text }) => msg === 'Slow statement' && /delete from allocations/.test(String(text)),
      );
      assert.deepEqual(slow.at(0)?.requestId, idOf(alone));
      assert.deepEqual(slow.at(1)?.requestIds, together.map(idOf));
    }));

  test('does not concern migrations at the start', () =>
    withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
      const other = new pg.Client({ connectionString: connection });
      await other.connect();
      await other.query('begin');
      await other.query('lock table kysely_migration in access exclusive mode');
      const limits = { statementTimeout: 2, syncOnStartup: true };
      const placementDatabase = { ...testConfig().placementDatabase, ...limits, connection };
      const opening = openService(testConfig({ placementDatabase }));
      await untilWaiting(other);
      await sleep(2_500);
      await other.query('commit');
      await (await opening).close();
      await other.end();
    }));
});

test('a database that is not heard any more is a 503, and asked again by a new connection', async () => {
  const links = new Set<Socket>();
  let silent = false;
  let target = new URL('postgresql://127.0.0.1');
  const proxy = net.createServer((client) => {
    const server = net.connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      links.add(from);
      from.on('error', () => {}).on('close', () => to.destroy());
      from.on('data', (data) => silent || to.write(data));
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as net.AddressInfo; // a TCP server has one
  const throughProxy = (url: string): string => {
    target = new URL(url);
    const through = new URL(url);
    through.port = String(port);
    return through.href;
  };
  await withService(async ({ send }) => {
    silent = true;
    const lost = await send('GET', '/resource_providers');
    assert.deepEqual([lost.status, /cannot be reached/.test(lost.text)], [503, true]);
    silent = false;
    assert.equal((await send('GET', '/resource_providers')).status, 200);
    assert.equal((await claim(send)).status, 204);
  }, throughProxy);
  for (const link of links) link.destroy();
  proxy.close();
});
