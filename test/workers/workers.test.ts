/** placement-api --workers: several processes behind one port. A process that ends is replaced. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { version } from '../../src/config/version.ts';
import { type CommandWorld, runToEnd, startCommand, withCommands } from '../manage/commands.ts';
import { execute } from '../postgresql.ts';
import { openClient, succeed } from '../races/client.ts';
import { until } from '../until.ts';
import { buildStock, checkLoad, type Load, type Stock, startLoad } from './load.ts';

type LogLine = Readonly<Record<string, unknown>>;

/** A running service with workers. */
type Service = {
  readonly url: string;
  readonly server: ReturnType<typeof startCommand>;
  /** The log so far. */
  log(): readonly LogLine[];
  /** The process id of each worker that has started. */
  pids(): ReadonlyMap<number, number>;
};

async function start({ folder, configFile }: CommandWorld, workers: number): Promise<Service> {
  const args = ['--config-file', configFile, '--workers', String(workers)];
  const server = startCommand('placement-api', args, folder);
  let text = '';
  server.child.stderr.on('data', (chunk: string) => {
    text += chunk;
  });
  const [, url = ''] = await server.said(/^placement-api \d\S* listens on (http:\/\/\S+)\n/m);
  const log = () =>
    text.split('\n').flatMap((line) => (line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line)] : []));
  const pids = () =>
    new Map<number, number>(
      log().flatMap(({ msg, worker, pid }) => (msg === 'This worker serves' ? [[Number(worker), Number(pid)]] : [])),
    );
  await until('all workers have said that they serve', () => pids().size === workers);
  return { url, server, log, pids };
}

function pidOf(service: Service, worker: number): number {
  const pid = service.pids().get(worker);
  assert.ok(pid, `worker ${worker} serves`);
  return pid;
}

const withWorkers = (workers: number, use: (service: Service, world: CommandWorld) => Promise<void>) =>
  withCommands('postgresql', 'migrated', async (world) => use(await start(world, workers), world));

async function checkDatabase({ config }: CommandWorld, load: Load, stock: Stock): Promise<void> {
  await checkLoad(async (statement) => (await execute(config.connection ?? '', statement)).rows, load, stock);
}

async function buildStockAt(url: string): Promise<Stock> {
  const client = openClient(url);
  const stock = await buildStock(client);
  client.close();
  return stock;
}

async function end({ server }: Service): Promise<void> {
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
}

test('connections are spread evenly, the log names the worker of each answer, and /metrics covers all', async () => {
  await withWorkers(3, async (service) => {
    await buildStockAt(service.url);
    const clients = Array.from({ length: 6 }, () => openClient(service.url));
    for (const client of clients) await client.send('GET', '/traits', 39);
    const answered = () => service.log().filter(({ msg, url }) => msg === 'request' && url === '/traits');
    await until('each request is in the log', () => answered().length === 6);
    assert.deepEqual(
      answered()
        .map(({ worker }) => worker)
        .sort(),
      [1, 1, 2, 2, 3, 3],
    );
    assert.ok(answered().every(({ worker, pid }) => service.pids().get(Number(worker)) === pid));

    const text = await (await fetch(`${service.url}/metrics`)).text();
    for (const worker of [1, 2, 3]) {
      assert.match(text, new RegExp(`^placement_requests_total\\{.*route="/traits",.*worker="${worker}"\\} 2$`, 'm'));
      assert.match(text, new RegExp(`^placement_build_info\\{version="${version}",worker="${worker}"\\} 1$`, 'm'));
      assert.match(text, new RegExp(`^process_start_time_seconds\\{worker="${worker}"\\} \\d`, 'm'));
    }
    assert.match(text, /^placement_workers 3$/m);
    assert.match(text, /^placement_worker_restarts_total 0$/m);
    const lines = text.split('\n').filter((line) => line !== '');
    assert.equal(new Set(lines).size, lines.length, 'each line occurs once');
    const names = lines.filter((line) => !line.startsWith('#')).map((line) => /^\w+/.exec(line)?.[0]);
    const runs = names.filter((name, place) => name !== names[place - 1] && !/_(bucket|sum|count)$/.test(name ?? ''));
    assert.equal(new Set(runs).size, runs.length, 'all series of a name are together');
    assert.match(text, /^openstack_placement_resource_total\{hostname="tight",resourcetype="VCPU"\} 12$/m);
    for (const client of clients) client.close();
    await end(service);
  });
});

test('a scrape refreshes the fleet in all workers, not only in the one that answers it', async () => {
  await withWorkers(2, async (service) => {
    const servedMs = performance.now();
    // One connection, so one worker. The other worker gets no requests.
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ages = async () => {
      const [answer] = await once(http.get(`${service.url}/metrics`, { agent }), 'response');
      const scraped = await text(answer);
      const asked = [...scraped.matchAll(/^placement_requests_total\{.*worker="(\d)"/gm)].map(([, worker]) => worker);
      assert.ok(new Set(asked).size <= 1, 'one worker answers');
      return [...scraped.matchAll(/^placement_fleet_age_seconds\{.*\} (\S+)$/gm)].map(([, age]) => Number(age));
    };
    await until('the fleets are some seconds old', () => performance.now() - servedMs > 2_000);
    let scrapedMs = performance.now();
    const first = await ages();
    assert.equal(first.length, 2);
    assert.ok(
      first.every((age) => age >= 2),
      `they tell the age before the scrape: ${first}`,
    );
    await until('both are as young as the scrape before', async () => {
      const sinceMs = scrapedMs;
      scrapedMs = performance.now();
      const scraped = await ages();
      return scraped.every((age) => age * 1000 <= performance.now() - sinceMs);
    });
    agent.destroy();
    await end(service);
  });
});

test('one worker counts what shapes fit for all, once in an interval', async () => {
  await withCommands('postgresql', 'migrated', async (world) => {
    const shapes = 'small: resources=VCPU:1&in_tree=8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11; other: resources=VCPU:2';
    const written = await readFile(world.configFile, 'utf8');
    const configure = (intervalSeconds: number) =>
      writeFile(world.configFile, `${written}\n[metrics]\nshapes = ${shapes}\nshapes_interval = ${intervalSeconds}\n`);
    const counts = async (url: string) => {
      const scraped = await (await fetch(`${url}/metrics`, { headers: { connection: 'close' } })).text();
      return scraped.split('\n').filter((line) => line.startsWith('placement_shape_capacity'));
    };
    const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';
    const fits = (small: number, other: number) => [
      `placement_shape_capacity{shape="small"} ${small}`,
      `placement_shape_capacity{shape="other"} ${other}`,
    ];

    await configure(3600);
    const patient = await start(world, 3);
    const client = openClient(patient.url);
    await succeed(client, 'POST', '/resource_providers', 39, { uuid: host, name: 'host' });
    await succeed(client, 'PUT', `/resource_providers/${host}/inventories`, 39, {
      resource_provider_generation: 0,
      inventories: { VCPU: { total: 8 } },
    });
    for (const total of [8, 6, 4]) {
      const { resource_provider_generation } = (await succeed(
        client,
        'GET',
        `/resource_providers/${host}/inventories`,
        39,
      )) as {
        resource_provider_generation: number;
      };
      await succeed(client, 'PUT', `/resource_providers/${host}/inventories`, 39, {
        resource_provider_generation,
        inventories: { VCPU: { total } },
      });
      // Each connection goes to the next worker.
      for (let scrape = 0; scrape < 3; scrape += 1) assert.deepEqual(await counts(patient.url), fits(8, 4));
    }
    // The number outlives the worker that counted.
    const killed = [1, 2].map((worker) => pidOf(patient, worker));
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    await until('others in their place', () => [1, 2].every((worker) => !killed.includes(pidOf(patient, worker))));
    assert.deepEqual(await counts(patient.url), fits(8, 4));
    client.close();
    await end(patient);

    await configure(0);
    const eager = await start(world, 3);
    for (let scrape = 0; scrape < 3; scrape += 1) assert.deepEqual(await counts(eager.url), fits(4, 2));
    await end(eager);
  });
});

test('a worker that is killed under load is replaced, and each failed request succeeds if repeated', async (t) => {
  await withWorkers(2, async (service, world) => {
    const stock = await buildStockAt(service.url);
    const load = startLoad([service.url], stock, 12);
    for (let kill = 1; kill <= 4; kill += 1) {
      const before = load.answered();
      await until('answers before the kill', () => load.answered() > before + 100);
      const worker = (kill % 2) + 1;
      const killed = pidOf(service, worker);
      process.kill(killed, 'SIGKILL');
      await until('another process in its place', () => service.pids().get(worker) !== killed);
    }
    await load.stop();
    t.diagnostic(`${load.broken.length} connections broke: ${[...new Set(load.broken)]}`);
    assert.ok(load.broken.length > 0, 'the kills must break connections');
    assert.deepEqual(load.failed, []);
    await checkDatabase(world, load, stock);
    const restarts = await (await fetch(`${service.url}/metrics`)).text();
    assert.match(restarts, /^placement_worker_restarts_total 4$/m);
    await end(service);
  });
});

test('SIGTERM under load, to the service or to one worker, breaks no request', async () => {
  await withWorkers(2, async (service, world) => {
    const stock = await buildStockAt(service.url);
    const load = startLoad([service.url], stock, 12);
    await until('answers', () => load.answered() > 100);
    const asked = pidOf(service, 1);
    process.kill(asked, 'SIGTERM');
    await until('another process in its place', () => service.pids().get(1) !== asked);
    assert.deepEqual(load.broken, []);
    const before = load.answered();
    await until('more answers', () => load.answered() > before + 100);
    await end(service);
    await load.stop();
    // After the socket is closed, a request never began.
    assert.deepEqual([...new Set([...load.broken, ...load.failed])], ['ECONNREFUSED']);
    await checkDatabase(world, load, stock);
  });
});

test('a worker that fails again and again is started at longer and longer intervals', async () => {
  await withWorkers(2, async (service) => {
    const ends = () => service.log().filter(({ msg }) => msg === 'A worker ended and is replaced');
    for (let kill = 1; kill <= 3; kill += 1) {
      process.kill(pidOf(service, 2), 'SIGKILL');
      await until('its end', () => ends().length === kill);
      assert.equal((await fetch(`${service.url}/readyz`)).status, 200, 'the other worker serves');
      const { pid } = ends().at(-1) ?? {};
      await until('its successor', () => service.pids().get(2) !== pid);
    }
    assert.deepEqual(
      ends().map(({ worker, signal, restartMs }) => [worker, signal, restartMs]),
      [
        [2, 'SIGKILL', 0],
        [2, 'SIGKILL', 1000],
        [2, 'SIGKILL', 2000],
      ],
    );
    await end(service);
  });
});

test('workers end in order when their primary is killed, and at once after a second signal', async () => {
  await withWorkers(2, async (service, world) => {
    service.server.child.kill('SIGKILL');
    await until('the workers are gone', () => [...service.pids().values()].every((pid) => !isAlive(pid)));

    const next = await start(world, 2);
    const headers = { 'x-auth-token': 'admin', 'content-type': 'application/json', expect: '100-continue' };
    const endless = http.request(`${next.url}/resource_providers`, { method: 'POST', headers });
    endless.on('error', () => {});
    endless.flushHeaders();
    await once(endless, 'continue'); // so a worker has it
    next.server.child.kill('SIGTERM');
    await until('connections are refused', () =>
      fetch(next.url, { headers: { connection: 'close' } }).then(
        () => false,
        () => true,
      ),
    );
    assert.equal(next.server.child.exitCode, null, 'the first signal waits for the request');
    next.server.child.kill('SIGTERM');
    assert.equal((await next.server.ended).code, 143);
    await until('the workers are gone', () => [...next.pids().values()].every((pid) => !isAlive(pid)));
  });
});

test('if no worker starts, the start ends with exit code 1, and the embedded database is refused', async () => {
  await withCommands('postgresql', 'empty', async ({ folder, configFile }) => {
    const args = ['--config-file', configFile, '--workers', '2'];
    const old = await runToEnd('placement-api', args, folder);
    assert.equal(old.code, 1);
    assert.match(old.stderr, /^placement-api: The database lacks the migrations .* "placement-manage db sync"/);
    assert.equal(old.stderr.trim().split('\n').length, 1, 'the message appears once, not for each worker');

    await writeFile(path.join(folder, 'policy.yaml'), '{');
    const synced = { OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP: 'true' };
    const none = await runToEnd('placement-api', args, folder, synced);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /a worker could not start: .*policy\.yaml/);
    assert.match(none.stderr, /placement-api: None of the 2 workers could serve/);
  });
  await withCommands('embedded', 'migrated', async ({ folder, configFile }) => {
    const { code, stderr } = await runToEnd('placement-api', ['--config-file', configFile, '--workers', '2'], folder);
    assert.deepEqual(
      [code, stderr],
      [
        78,
        'placement-api: [api] workers = 2 (or --workers) needs a PostgreSQL server, because the embedded database is for a ' +
          'single process. Set [placement_database] connection, or leave it at 1 worker.\n',
      ],
    );
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
