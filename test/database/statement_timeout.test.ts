/** A statement that the database does not answer costs its request and nothing else. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import net, { type Socket } from 'node:net';
import { suite, test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { pino } from 'pino';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { untilWaitingFor } from '../races/two_connections.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';

const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';

const stock = { VCPU: { total: 100 } };

const claim = (send: Send, consumer: string = randomUUID(), providers: readonly string[] = [host]) =>
  send('PUT', `/allocations/${consumer}`, newClaim(Object.fromEntries(providers.map((uuid) => [uuid, { VCPU: 1 }]))));

/** How many statements of this database run `pg_sleep`. */
async function sleepingCount(other: pg.Client): Promise<number> {
  const { rows } = await other.query(`select count(*)::integer as sleeping from pg_stat_activity
    where datname = current_database() and wait_event = 'PgSleep'`);
  return rows[0].sleeping;
}

/**
 * From now on a statement that writes allocations takes 0.4 s, and the first one until the returned function is called: on a busy machine
 * 0.4 s may be over before others wait for it.
 *
 * @param event what the statement does: `insert`, or `delete`
 */
async function dawdleAfter(event: 'insert' | 'delete', other: pg.Client): Promise<() => Promise<unknown>> {
  await other.query(`
    create table goes_on ();
    create function dawdle() returns trigger language plpgsql as $$ begin
      perform pg_sleep(0.4);
      while not exists (select from goes_on) loop perform pg_sleep(0.02); end loop;
      return null;
    end $$;
    create trigger dawdle after ${event} on allocations execute function dawdle()`);
  return () => other.query('insert into goes_on default values');
}

/** Lets everything happen in this process that waits for nothing else. */
async function untilIdle(): Promise<void> {
  for (let iteration = 0; iteration < 50; iteration += 1) await nextIteration();
}

type Setup = {
  readonly service: PlacementService;
  readonly send: Send;
  /** The connection of another program to the database. */
  readonly other: pg.Client;
  /** What the service logged. */
  readonly entries: readonly Readonly<Record<string, unknown>>[];
};

/** The slow statements that were logged and have this in their text: on a busy machine any other one may be slow as well. */
const slowOnes = (entries: Setup['entries'], pattern: RegExp): Setup['entries'] =>
  entries.filter(({ msg, sql: text }) => msg === 'Slow statement' && pattern.test(String(text)));

/** A service with one connection to the database, on which statements may take two seconds, and with a provider. */
async function withService(
  use: (setup: Setup) => Promise<void>,
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
        send('PUT', `/resource_providers/${host}/traits`, {
          resource_provider_generation: 1,
          traits: ['HW_CPU_X86_AVX'],
        }),
        claim(send),
        send('GET', '/resource_providers'),
      ]);
      await other.query('commit');
      for (const { status, headers: got, text } of answers) {
        assert.equal(status, 503, text);
        assert.equal(got.get('retry-after'), '1');
        assert.match(text, /did not answer in time|holds a lock/);
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
          assert.match(text, /did not answer in time|holds a lock/);
        }
        await other.query('rollback');
        assert.equal((await claim(send)).status, 204);
      },
      (url) => `${url}?options=${encodeURIComponent('-c lock_timeout=200ms')}`,
    ));

  test('that claims wait for is logged with the ids of all of them', () =>
    withService(async ({ send, other, entries }) => {
      assert.equal((await claim(send)).status, 204, 'the owners are known');
      const before = slowOnes(entries, /insert into allocations/).length;
      const goOn = await dawdleAfter('insert', other);
      const first = claim(send);
      await until('the first is being written', async () => (await sleepingCount(other)) > 0);
      const others = Promise.all([claim(send), claim(send)]);
      await untilIdle();
      await goOn();
      const [alone, together] = await Promise.all([first, others]);
      const idOf = ({ headers: got }: { readonly headers: Headers }) => got.get('x-openstack-request-id');
      const slow = slowOnes(entries, /insert into allocations/).slice(before);
      assert.deepEqual([slow.at(0)?.requestId, slow.at(0)?.requestIds], [idOf(alone), undefined]);
      assert.deepEqual(slow.at(1)?.requestIds, together.map(idOf));
      for (const { ms } of slow) assert.ok(Number(ms) >= 300);
    }));

  test('is not what a claim waits for that lost its guard: it is counted, and written', () =>
    withService(async ({ service, send, other }) => {
      assert.equal((await claim(send)).status, 204, 'the owners are known');
      // Half a second after a refresh a claim begins one, which may still be under way: it must not see what comes now.
      await service.fleet.fresh();
      await other.query('update resource_providers set generation = generation + 1');
      assert.equal((await claim(send)).status, 204);
      const metrics = await send('GET', '/metrics');
      assert.match(metrics.text, /^placement_claims_total\{outcome="retried"\} 1$/m);
      assert.match(metrics.text, /^placement_claims_total\{outcome="written"\} 2$/m);
    }));

  test('that deletions wait for is logged with the ids of those that it was for', () =>
    withService(async ({ send, other, entries }) => {
      const consumers = [randomUUID(), randomUUID(), randomUUID()];
      for (const consumer of consumers) assert.equal((await claim(send, consumer)).status, 204);
      const before = slowOnes(entries, /delete from allocations/).length;
      const goOn = await dawdleAfter('delete', other);
      const [first = '', ...others] = consumers;
      const remove = (consumer: string) => send('DELETE', `/allocations/${consumer}`);
      const removing = remove(first);
      await until('the first is being deleted', async () => (await sleepingCount(other)) > 0);
      const removingOthers = Promise.all(others.map(remove));
      await untilIdle();
      await goOn();
      const [alone, together] = await Promise.all([removing, removingOthers]);
      const idOf = ({ headers: got }: { readonly headers: Headers }) => got.get('x-openstack-request-id');
      const slow = slowOnes(entries, /delete from allocations/).slice(before);
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
      await untilWaitingFor(other, 2_500);
      await other.query('commit');
      await (await opening).close();
      await other.end();
    }));
});

suite('a lock that another program holds too long', () => {
  /** The service has one connection for all: what waits for a lock must not wait on it. */
  test('is a 503 for each claim that needs the lock, and other claims are written meanwhile', () =>
    withService(async ({ send, other }) => {
      const [storage, free] = [randomUUID(), randomUUID()];
      for (const uuid of [storage, free]) await makeProvider(send, uuid, stock);
      assert.equal((await claim(send)).status, 204, 'the owners are known');
      await other.query(`begin; select from resource_providers where uuid = '${host}' for update`);
      let refused = 0;
      const waiting = [[host], [host, storage], [host], [host, storage], [host]].map(async (providers) => {
        const answer = await claim(send, randomUUID(), providers);
        refused += 1;
        return answer;
      });
      for (const providers of [[free], [storage], [free, storage], [storage, free]]) {
        assert.equal((await claim(send, randomUUID(), providers)).status, 204);
      }
      assert.equal(refused, 0);
      for (const { status, headers: got, text } of await Promise.all(waiting)) {
        assert.deepEqual([status, got.get('retry-after')], [503, '1']);
        assert.match(text, /holds a lock/);
      }
      await other.query('rollback');
      assert.equal((await claim(send)).status, 204);
    }));

  test('is a 503 for each deletion that needs the lock, and other deletions are done meanwhile', () =>
    withService(async ({ send, other }) => {
      const [held, free] = [randomUUID(), randomUUID()];
      for (const consumer of [held, free]) assert.equal((await claim(send, consumer)).status, 204);
      await other.query(`begin; select from consumers where uuid = '${held}' for update`);
      const remove = async (consumer: string) => (await send('DELETE', `/allocations/${consumer}`)).status;
      const waiting = [remove(held), remove(held)];
      assert.deepEqual(await Promise.all([remove(free), remove(randomUUID())]), [204, 404]);
      assert.deepEqual(await Promise.all(waiting), [503, 503]);
    }));

  test('is a 503 for each other write that needs the lock, and further writes are done meanwhile', () =>
    withService(async ({ send, other }) => {
      const doomed = randomUUID();
      await makeProvider(send, doomed, stock);
      await other.query(`begin; select from resource_providers where uuid <> '${doomed}' for update;
        insert into traits (name) values ('CUSTOM_HELD')`);
      const waiting = [
        ...Array.from({ length: 6 }, () => send('PUT', `/resource_providers/${host}`, { name: 'renamed' })),
        send('DELETE', `/resource_providers/${host}`),
        send('PUT', '/traits/CUSTOM_HELD'),
      ];
      assert.equal((await send('PUT', '/traits/CUSTOM_FREE')).status, 201);
      assert.equal((await send('PUT', `/resource_providers/${doomed}`, { name: 'renamed too' })).status, 200);
      assert.equal((await send('DELETE', `/resource_providers/${doomed}`)).status, 204);
      for (const { status, headers: got } of await Promise.all(waiting)) {
        assert.deepEqual([status, got.get('retry-after')], [503, '1']);
      }
    }));
});

test('a database that does not answer any more is a 503, and the next request uses a new connection', async () => {
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
