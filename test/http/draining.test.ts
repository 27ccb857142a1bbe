/** A server that shuts down while a client still reads its answer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate as nextRound, setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import { Hono } from 'hono';
import type { HonoEnv } from '../../src/http/exchange.ts';
import { acceptLast, acceptMs, listen, mostWaiting } from '../../src/http/server/listen.ts';
import { listenForOperator } from '../../src/http/server/operator_socket.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { until } from '../support/until.ts';

/** How many timers keep the process from ending. */
const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

test('an answer to a slow client is sent completely, and then idle connections are closed', async () => {
  const bytes = 30_000_000;
  const app = new Hono<HonoEnv>();
  app.get('/', (c) => c.body('a'.repeat(bytes), 200, { 'content-type': 'text/plain' }));
  app.get('/small', (c) => c.text('small'));
  const { url, close } = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 60_000 });
  const port = Number(new URL(url).port);
  const ask = (path: string) => {
    const client = net.connect(port, '127.0.0.1');
    client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    return client;
  };
  const idle = ask('/small');
  await once(idle.resume(), 'data');
  const silent = net.connect(port, '127.0.0.1');
  const silentIsClosed = once(silent.resume(), 'close');
  const slow = ask('/');
  await once(slow, 'readable');
  let closed = false;
  const before = timers();
  const closing = close().then(() => {
    closed = true;
  });
  let length = 0;
  const ended = once(slow, 'end');
  // When the server closes connections that it considers idle, it also ends those that never sent anything.
  await silentIsClosed;
  length += slow.read(1_000)?.length ?? 0;
  assert.ok(!closed);
  slow.on('data', (data) => {
    length += data.length;
  });
  await ended;
  assert.ok(length > bytes, `${length} bytes came`);
  await closing;
  assert.ok(timers() <= before, 'nothing waits for the time after which connections are cut off');
  idle.destroy();
});

test('an answer that does not end is cut off after its time', async () => {
  const app = new Hono<HonoEnv>();
  const arrived = Promise.withResolvers<void>();
  app.get('/', () => {
    arrived.resolve();
    return new Promise(() => {});
  });
  const { url, close } = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 10 });
  const client = net.connect(Number(new URL(url).port), '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await arrived.promise;
  const late = sleep(20_000, 'it waits', { ref: false });
  assert.equal(await Promise.race([close().then(() => 'it has ended'), late]), 'it has ended');
  client.destroy();
});

test('connections that wait to be accepted when the time for them is over are answered, also where the process got no time', async () => {
  const app = new Hono<HonoEnv>();
  app.get('/', (c) => c.text('here'));
  const { url, close } = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 60_000 });
  const closing = close();
  const clients = Array.from({ length: 20 }, () => net.connect(Number(new URL(url).port), '127.0.0.1'));
  const answers = Promise.all(clients.map(text));
  for (const client of clients) client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await new Promise(process.nextTick); // the kernel has the connections
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * acceptMs);
  for (const answer of await answers) assert.match(answer, /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nhere$/s);
  await closing;
});

test('connections are accepted as long as each round of the event loop has some, and not longer', async () => {
  for (const busyRounds of [0, 5]) {
    const server = net.createServer();
    let isOver = false;
    void acceptLast([server]).then(() => {
      isOver = true;
    });
    // The time in which it accepts in any case. Each round is looked at, since it may end with the first round after that.
    for (const end = performance.now() + 60_000; server.listenerCount('connection') === 0; await nextRound()) {
      assert.ok(performance.now() < end, 'it does not look for connections');
    }
    let rounds = 0;
    while (!isOver && rounds < mostWaiting) {
      if (rounds < busyRounds) server.emit('connection');
      rounds += 1;
      await nextRound();
    }
    assert.ok(rounds >= busyRounds && rounds < busyRounds + 5, `${rounds} rounds`);
  }
});

test('a connection that has sent no request ends with the server, also by TLS and at the socket of the operator', async () => {
  const app = new Hono<HonoEnv>();
  const certificate = selfSigned();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-silent-'));
  const socket = path.join(folder, 'operator.sock');
  const secure = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 60_000, tls: certificate });
  const endSocket = await listenForOperator(app, socket);
  const port = Number(new URL(secure.url).port);
  const clients = [tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false }), net.connect(socket)];
  await Promise.all(clients.map((client, index) => once(client.resume(), index === 0 ? 'secureConnect' : 'connect')));
  await sleep(50); // the server has accepted them
  const ends = Promise.all([secure.close(), endSocket()]).then(() => 'both have ended');
  assert.equal(await Promise.race([ends, sleep(20_000, 'one waits', { ref: false })]), 'both have ended');
  for (const client of clients) client.destroy();
  await rm(folder, { recursive: true });
});

for (const last of [3, 4]) {
  test(`all answers of a client that did not wait for them are sent, and the last one says that the connection ends: ${last}`, async () => {
    const app = new Hono<HonoEnv>();
    const mayAnswer = Promise.withResolvers<void>();
    let arrived = 0;
    app.get('/:number', async (c) => {
      arrived += 1;
      await mayAnswer.promise;
      return c.text(`answer ${c.req.param('number')}`);
    });
    const { url, close } = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 60_000 });
    const ask = (number: number) => `GET /${number} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const port = Number(new URL(url).port);
    const isRefused = () =>
      new Promise<boolean>((resolve) => {
        const other = net.connect(port, '127.0.0.1', () => resolve(other.destroy() && false));
        other.once('error', () => resolve(true));
      });
    const client = net.connect(port, '127.0.0.1');
    client.write(ask(1) + ask(2) + ask(3));
    let answers = '';
    client.on('data', (data) => {
      answers += data;
    });
    const ended = once(client, 'close');
    await until('the requests have arrived', () => arrived === 3);
    const closing = close();
    await until('no new connection is accepted', isRefused);
    if (last === 4) client.write(ask(4));
    await until('the last request has arrived', () => arrived === last);
    mayAnswer.resolve();
    await Promise.all([ended, closing]);
    assert.deepEqual(answers.match(/^(?:connection: close|answer \d)/gim), [
      ...['answer 1', 'answer 2', 'answer 3'].slice(0, last - 1),
      'connection: close',
      `answer ${last}`,
    ]);
  });
}
