/** The configurations of deploy/ for HAProxy and nginx, with the real programs in front of real services. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { type Listening, listen } from '../../src/http/server/listen.ts';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { messageOf } from '../../src/text/print.ts';
import { openStream } from '../changes/stream.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { startRestartable } from '../soak/restartable_postgresql.ts';
import { anyEngine } from '../support/engines.ts';
import { freePort } from '../support/free_port.ts';
import { hasHaproxy, startHaproxy } from '../support/haproxy.ts';
import { hasNginx, startNginx } from '../support/nginx.ts';
import { createDatabase, execute } from '../support/postgresql.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { testConfig, withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { claimOne, clientOf, type Reply, takeOnlyOne, untilListed, type WaitingClient } from '../waiting/client.ts';

/** Where a configuration is changed for a test, as its first lines say: addresses, the certificate and the servers. */
type Changes = {
  readonly port: number;
  readonly tlsPort: number;
  /** A folder with placement.pem and placement.key. */
  readonly certificates: string;
  /** The ports of the processes. */
  readonly servers: readonly number[];
};

type Proxy = {
  readonly name: string;
  readonly isThere: () => boolean;
  readonly file: string;
  readonly change: (config: string, changes: Changes) => string;
  readonly start: typeof startHaproxy;
  /** Its own sentence where no process can be reached. */
  readonly unreachable: RegExp;
};

/** Replaces all of a text, which must be there. */
function replaced(config: string, text: string, by: string): string {
  assert.ok(config.includes(text), text);
  return config.replaceAll(text, by);
}

const proxies: readonly Proxy[] = [
  {
    name: 'HAProxy',
    isThere: hasHaproxy,
    file: 'haproxy.cfg',
    change: (config, { port, tlsPort, certificates, servers }) => {
      const withTls = replaced(
        config,
        '# bind :443 ssl crt /etc/haproxy/',
        `bind 127.0.0.1:${tlsPort} ssl crt ${certificates}/`,
      );
      const lines = servers.map((each, index) => `server p${index + 1} 127.0.0.1:${each}`).join('\n  ');
      return replaced(replaced(withTls, 'bind :8779', `bind 127.0.0.1:${port}`), 'server p1 127.0.0.1:8778', lines);
    },
    start: startHaproxy,
    unreachable: /No process of the service can be reached/,
  },
  {
    name: 'nginx',
    isThere: hasNginx,
    file: 'nginx.conf',
    change: (config, { port, tlsPort, certificates, servers }) => {
      const withTls = replaced(
        replaced(replaced(config, '# listen 443', `listen 127.0.0.1:${tlsPort}`), '# ssl_', 'ssl_'),
        '/etc/nginx/',
        `${certificates}/`,
      );
      const lines = servers.map((each) => `server 127.0.0.1:${each} fail_timeout=2s;`).join('\n  ');
      return replaced(
        replaced(withTls, 'listen 8779', `listen 127.0.0.1:${port}`),
        'server 127.0.0.1:8778 fail_timeout=2s;',
        lines,
      );
    },
    start: startNginx,
    unreachable: /No process of the service has answered/,
  },
];

type Front = { readonly client: WaitingClient; readonly url: string; readonly tlsPort: number; readonly ca: string };

/** Calls back with a proxy in front of processes. @param shorten changes times of the configuration */
async function withFront(
  { file, change, start }: Proxy,
  servers: readonly number[],
  use: (front: Front) => Promise<void>,
  shorten = (config: string): string => config,
): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-front-'));
  await chmod(folder, 0o755);
  const { cert, key } = selfSigned();
  // HAProxy wants both in one file, nginx takes the first part of it.
  await writeFile(path.join(folder, 'placement.pem'), cert + key);
  await writeFile(path.join(folder, 'placement.key'), key);
  const deployed = await readFile(path.join(import.meta.dirname, '..', '..', 'deploy', file), 'utf8');
  const [port, tlsPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const client = clientOf(url);
  const config = shorten(change(deployed, { port, tlsPort, certificates: folder, servers }));
  const proxy = await start(config, async () => assert.equal((await client.send('GET', '/')).status, 200));
  try {
    await use({ client, url, tlsPort, ca: cert });
  } finally {
    client.close();
    await proxy.stop();
    await rm(folder, { recursive: true });
  }
}

const portOf = ({ url }: Listening): number => Number(new URL(url).port);

/** A 503 that tells clients when to ask again, and why, in the form of the API. */
function isHelpful({ status, headers, body }: Reply): string {
  assert.deepEqual([status, headers['retry-after'], headers['content-type']], [503, '1', 'application/json']);
  const { errors } = body as { errors: { status: number; title: string; detail: string }[] }; // the form of all errors of the API
  assert.deepEqual([errors[0]?.status, errors[0]?.title], [503, 'Service Unavailable']);
  return errors[0]?.detail ?? '';
}

/** All that is answered to bytes. */
async function sentRaw(url: string, bytes: string): Promise<string> {
  const { port, hostname } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  socket.write(bytes);
  return text(socket);
}

/** Calls back with the port of a machine that is unavailable: connections to it are neither accepted nor refused. */
async function withAbsent(use: (port: number) => Promise<void>): Promise<void> {
  // It never accepts a connection. The kernel does that for as many as its queue has room for.
  const program =
    "const s = require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {" +
    'console.log(s.address().port); setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)) })';
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = await new Promise<number>((resolve) => child.stdout.once('data', (line) => resolve(Number(line))));
  const queue: net.Socket[] = [];
  try {
    for (let isFull = false; !isFull; ) {
      const socket = net.connect(port, '127.0.0.1').on('error', () => {});
      queue.push(socket);
      await sleep(500);
      await immediate(); // on a busy machine the time may be over before the sockets are looked at
      isFull = socket.connecting;
    }
    await use(port);
  } finally {
    for (const socket of queue) socket.destroy();
    child.kill('SIGKILL');
  }
}

for (const proxy of proxies) {
  const skip = proxy.isThere() ? false : `${proxy.name} is not installed`;
  const on = { host: '127.0.0.1', port: 0, drainMs: 100 };

  test(`${proxy.name} on one machine: at / and below /placement, by TLS, with streams and waits`, { skip }, () => {
    const osloMiddleware = { enableProxyHeadersParsing: true };
    return withTestService(anyEngine, { osloMiddleware }, async ({ app, endWaits }) => {
      const server = await listen(app, on);
      await withFront(
        proxy,
        [portOf(server)],
        async ({ client, url, tlsPort, ca }) => {
          // A health check by HTTP/1.0 may have no Host.
          assert.match(await sentRaw(url, 'GET /readyz HTTP/1.0\r\n\r\n'), /^HTTP\/1\.\d 200 /);
          for (const url of ['/', '/placement', '/placement/', '/placement?a=b'])
            assert.match(JSON.stringify((await client.send('GET', url)).body), /"max_version":"1\.39"/, url);
          assert.equal((await client.send('GET', '/placementresource_providers')).status, 404);

          const long = Array.from({ length: 2_000 }, () => randomUUID()).join(',');
          const found = await client.send('GET', `/placement/resource_providers?member_of=in:${long}`);
          assert.deepEqual([found.status, at(found.body, 'resource_providers')], [200, []]);

          // The service learns how it was called, and gets the rest byte for byte.
          const name = 'a/b c?&';
          const located = await new Promise<string>((resolve, reject) => {
            const headers = {
              'x-auth-token': 'admin',
              'content-type': 'application/json',
              'x-forwarded-prefix': '/invented',
            };
            const options = {
              method: 'POST',
              host: 'localhost',
              port: tlsPort,
              path: '/placement/resource_providers',
              headers,
              ca,
            };
            const request = https.request(options, (answer) => {
              answer.resume();
              resolve(`${answer.statusCode} ${answer.headers.location}`);
            });
            request.on('error', reject).end(JSON.stringify({ name, uuid: '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11' }));
          });
          assert.equal(
            located,
            `201 https://localhost:${tlsPort}/placement/resource_providers/8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11`,
          );
          for (const below of ['', '/placement']) {
            const found = await client.send('GET', `${below}/resource_providers?name=${encodeURIComponent(name)}`);
            assert.match(JSON.stringify(found.body), /8ca5d4a0/);
          }

          // An event arrives when it happens, though the stream continues.
          const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 2.8' };
          const stream = await openStream(`${url}/placement/changes`, headers);
          const changed = stream.next();
          await client.send('POST', '/resource_providers', { body: { name: 'another', uuid: randomUUID() } });
          await changed;
          stream.leave();

          // A claim may wait for longer than other requests may take.
          const holder = await takeOnlyOne(client);
          const uuid = randomUUID();
          const waits = claimOne(client, uuid);
          await untilListed(client, [uuid]);
          const tooLong = await client.send('GET', '/changes', { wait: 30 });
          assert.deepEqual([tooLong.status, tooLong.headers['content-type']], [504, 'application/json']);
          assert.match(JSON.stringify(tooLong.body), /"title":"Gateway Timeout"/);
          await client.send('DELETE', `/allocations/${holder}`);
          assert.equal((await waits).status, 200);
        },
        (config) => config.replace(/(timeout server|proxy_read_timeout) 75s/g, '$1 2s'),
      );
      endWaits();
      await server.close();
    });
  });

  test(`${proxy.name}: a claim that was not sent goes to another process, one that was sent does not`, { skip }, () =>
    withTestService(anyEngine, {}, async (service) => {
      const send = requestsTo(service);
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 1000 } });
      const server = await listen(service.app, on);
      const claim = (client: WaitingClient, uuid: string): Promise<Reply> =>
        client.send('PUT', `/allocations/${uuid}`, { body: newClaim({ [host]: { VCPU: 1 } }) });
      // This process reads a claim, and breaks off.
      let broken = 0;
      const breaking = http.createServer(({ method, socket }, response) => {
        if (method === 'GET') response.end('{}');
        else {
          broken += 1;
          socket.destroy();
        }
      });
      await new Promise<void>((resolve) => void breaking.listen(0, '127.0.0.1', resolve));
      const { port } = breaking.address() as AddressInfo; // a TCP server has one
      try {
        // No server listens on the first port. nginx retries it every 2 s.
        await withFront(proxy, [1, portOf(server)], async ({ client }) => {
          for (const end = performance.now() + 5_000; performance.now() < end; await sleep(100)) {
            const { status, body } = await claim(client, randomUUID());
            assert.equal(status, 204, JSON.stringify(body));
          }
        });

        await withAbsent((absent) =>
          withFront(proxy, [absent, portOf(server)], async ({ client }) => {
            for (const end = performance.now() + 6_000; performance.now() < end; await sleep(100)) {
              const beganMs = performance.now();
              const { status, body } = await claim(client, randomUUID());
              assert.equal(status, 204, JSON.stringify(body));
              assert.equal((await client.send('GET', '/resource_providers')).status, 200);
              const tookMs = performance.now() - beganMs;
              assert.ok(tookMs < 8_000, `${tookMs} ms`);
            }
          }),
        );

        await withFront(proxy, [port, portOf(server)], async ({ client }) => {
          let uuid = '';
          let outcome = '';
          while (broken === 0) {
            uuid = randomUUID();
            outcome = await claim(client, uuid).then(
              ({ status, body }) => `${status} ${JSON.stringify(body)}`,
              (error: unknown) => messageOf(error),
            );
          }
          // Where it has used the connection before, HAProxy ends that of the client instead, so that the client asks again.
          assert.match(outcome, /^50[23] .*It may have done what was asked|^socket hang up$/);
          assert.equal(broken, 1);
          const { json } = accepted(await send('GET', `/allocations/${uuid}`));
          assert.deepEqual(at(json, 'allocations'), {});
        });
      } finally {
        breaking.close();
        await server.close();
      }
    }),
  );

  test(`${proxy.name} on many machines: the answers tell clients to retry, whatever has failed`, { skip }, async () => {
    const database = await startRestartable();
    const { url } = await createDatabase(database.url);
    const config = testConfig({ placementDatabase: { connection: url, syncOnStartup: true } });
    const services: PlacementService[] = [];
    for (let count = 0; count < 3; count += 1) services.push(await openService(config));
    const servers = await Promise.all(services.map(({ app }) => listen(app, on)));
    try {
      await withFront(proxy, servers.map(portOf), async ({ client }) => {
        const read = () => client.send('GET', '/resource_providers');
        const write = () =>
          client.send('POST', '/resource_providers', { body: { name: randomUUID(), uuid: randomUUID() } });
        const serves = (): Promise<void> =>
          until('requests are served', async () => (await read()).status === 200 && (await write()).status < 300);
        await serves();

        await execute(database.url, 'alter system set default_transaction_read_only = on');
        await execute(database.url, 'select pg_reload_conf()');
        await until('writes are refused', async () => (await write()).status === 503);
        // Longer than it takes HAProxy to find that no process is ready.
        for (const end = performance.now() + 9_000; performance.now() < end; await sleep(200)) {
          assert.equal((await read()).status, 200);
          assert.match(isHelpful(await write()), /The database is read-only/);
        }
        await execute(database.url, 'alter system reset default_transaction_read_only');
        await execute(database.url, 'select pg_reload_conf()');
        await serves();

        await database.shutDownAtOnce();
        await until('it is noticed', async () => (await read()).status === 503);
        for (const end = performance.now() + 9_000; performance.now() < end; await sleep(200)) {
          assert.match(isHelpful(await read()), /The database cannot be reached/);
        }
        await database.start();
        await serves();

        await servers[0]?.close();
        for (let count = 0; count < 30; count += 1) assert.equal((await read()).status, 200);
        await Promise.all(servers.slice(1).map(({ close }) => close()));
        await until('it is noticed', async () => (await read()).status === 503);
        for (const path of ['/resource_providers', '/placement/allocations/8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11'])
          assert.match(isHelpful(await client.send('GET', path)), proxy.unreachable);
      });
    } finally {
      await Promise.all(servers.map(({ close }) => close()));
      for (const service of services) await service.close();
      await database.stop();
    }
  });
}
