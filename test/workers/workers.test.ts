/** placement-api --workers: several processes behind one port. A process that ends is replaced. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { version } from '../../src/config/version.ts';
import { isRunning } from '../bench/processes.ts';
import { runToEnd, withCommands } from '../manage/commands.ts';
import { openClient } from '../races/client.ts';
import { until } from '../support/until.ts';
import { startLoad } from './load.ts';
import { buildStockAt, checkDatabase, end, pidOf, start, withWorkers } from './service.ts';

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
    const runs = names.filter((name, index) => name !== names[index - 1] && !/_(bucket|sum|count)$/.test(name ?? ''));
    assert.equal(new Set(runs).size, runs.length, 'all series of a name are together');
    assert.match(text, /^openstack_placement_resource_total\{hostname="tight",resourcetype="VCPU"\} 12$/m);
    for (const client of clients) client.close();
    await end(service);
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

test('SIGTERM under load, to one worker or to all processes, breaks no request, nor do SIGINT and SIGHUP to workers', async () => {
  await withWorkers(2, async (service, world) => {
    const stock = await buildStockAt(service.url);
    const load = startLoad([service.url], stock, 12);
    await until('answers', () => load.answered() > 100);
    const pid = pidOf(service, 1);
    process.kill(pid, 'SIGTERM');
    await until('another process in its place', () => service.pids().get(1) !== pid);
    assert.deepEqual(load.broken, []);
    // As a terminal does. What these signals mean is for the primary alone.
    for (const signal of ['SIGINT', 'SIGHUP']) {
      for (const each of service.pids().values()) process.kill(each, signal);
    }
    const before = load.answered();
    await until('more answers', () => load.answered() > before + 100);
    assert.deepEqual(load.broken, []);
    const ended = end(service);
    for (const each of service.pids().values()) process.kill(each, 'SIGTERM');
    await ended;
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
    await until('the workers are gone', () => [...service.pids().values()].every((pid) => !isRunning(pid)));

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
    await until('the workers are gone', () => [...next.pids().values()].every((pid) => !isRunning(pid)));
  });
});

test('if no worker starts, the start ends with exit code 1, and the embedded database is refused', async () => {
  await withCommands('postgresql', 'empty', async ({ folder, configFile }) => {
    const args = ['--config-file', configFile, '--workers', '2'];
    const old = await runToEnd('placement-api', args, folder);
    assert.equal(old.code, 1);
    assert.match(old.stderr, /^placement-api: The database lacks the migrations .* "placement-manage db sync"/);
    assert.equal(old.stderr.trim().split('\n').length, 1, 'the message appears once, not for each worker');

    const synced = { OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP: 'true', OS_API__AUTH_STRATEGY: 'tokens' };
    await writeFile(path.join(folder, 'policy.yaml'), '{');
    const wrong = await runToEnd('placement-api', args, folder, synced);
    assert.equal(wrong.code, 78, 'as without workers');
    assert.match(wrong.stderr, /^placement-api: .*policy\.yaml/);

    await writeFile(path.join(folder, 'policy.yaml'), '{}');
    const keys = path.join(folder, 'missing.json'); // only a worker reads it
    await appendFile(
      configFile,
      `\n[jwt:ci]\nissuer = ci\naudience = placement\nproject_claim = /p\nroles = member\njwks_file = ${keys}\n`,
    );
    const none = await runToEnd('placement-api', args, folder, synced);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /a worker could not start: .*missing\.json/);
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

test('an address where another program listens ends the start with the exit code that it has without workers', async () => {
  await withCommands('postgresql', 'migrated', async ({ folder, configFile }) => {
    const other = net.createServer();
    await once(other.listen(0, '127.0.0.1'), 'listening');
    try {
      const { port } = other.address() as net.AddressInfo; // it listens on a port
      const args = ['--config-file', configFile, '--workers', '2', '--port', String(port)];
      const { code, stderr } = await runToEnd('placement-api', args, folder);
      assert.equal(code, 71);
      assert.match(stderr, new RegExp(`^placement-api: .*:${port}: another program listens there`));
    } finally {
      other.close();
    }
  });
});
