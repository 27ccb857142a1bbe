/** The connections that the primary process hands to its workers. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextRound } from 'node:timers/promises';
import tls from 'node:tls';
import { mostWaiting } from '../../src/http/server/listen.ts';
import type { FromWorker } from '../../src/workers/messages.ts';
import { openDistributor } from '../../src/workers/supervisor.ts';
import { takeConnections } from '../../src/workers/worker.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { holdTime } from '../support/hold_time.ts';
import { until } from '../support/until.ts';

test('a connection is closed if its client leaves after the TLS handshake and before its first request', async () => {
  const messages: FromWorker['kind'][] = [];
  takeConnections(new Map([['api', createTlsServer(selfSigned())]]), ({ kind }) => messages.push(kind));
  // As the primary does, except that the connection comes from this process.
  const primary = net.createServer({ pauseOnConnect: true }, (socket) => {
    process.emit('message', { kind: 'connection', id: 1, listener: 'api' }, socket);
  });
  primary.listen(0, '127.0.0.1');
  await once(primary, 'listening');
  try {
    const { port } = primary.address() as AddressInfo; // it listens on TCP
    const client = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    await once(client, 'secureConnect');
    client.destroy();
    await until('the worker says so', () => messages.includes('released'));
    assert.deepEqual(messages, ['taken', 'released']);
  } finally {
    primary.close();
    process.removeAllListeners('message');
  }
});

/** What a worker does with a connection: it takes it, says its name, and holds it until the client closes it or writes; or nothing. */
const holds = `
  process.on('message', ({ id }, socket) => {
    process.send({ kind: 'taken', id });
    socket.on('close', () => process.send({ kind: 'released' })).on('error', () => {});
    socket.on('data', () => socket.destroy()).write(process.argv[1]);
  });`;
const hangs = `process.on('message', () => {});`;

type Worker = { readonly child: ChildProcess; readonly messages: FromWorker['kind'][] };

/** Calls back with the distributor of connections to a port, and with functions that start workers and connect clients. */
async function withDistributor(
  use: (
    distributor: ReturnType<typeof openDistributor>,
    start: (name: string, script: string) => Worker,
    connect: () => Promise<net.Socket>,
  ) => Promise<void>,
): Promise<void> {
  const distributor = openDistributor();
  const [workers, clients]: [ChildProcess[], net.Socket[]] = [[], []];
  let accepted = 0;
  const primary = net.createServer({ pauseOnConnect: true }, (socket) => {
    accepted += 1;
    distributor.give(socket, 'api');
  });
  primary.listen(0, '127.0.0.1');
  await once(primary, 'listening');
  const { port } = primary.address() as AddressInfo; // it listens on TCP
  const start = (name: string, script: string): Worker => {
    const child = spawn(process.execPath, ['-e', script, name], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const messages: FromWorker['kind'][] = [];
    child.on('message', ({ kind }: FromWorker) => messages.push(kind));
    workers.push(child);
    distributor.add(child);
    return { child, messages };
  };
  const connect = async (): Promise<net.Socket> => {
    const client = net.connect(port, '127.0.0.1').setEncoding('utf8');
    clients.push(client);
    await until('it is accepted', () => accepted === clients.length);
    return client;
  };
  try {
    await use(distributor, start, connect);
  } finally {
    for (const client of clients) client.destroy();
    for (const worker of workers) worker.kill('SIGKILL');
    distributor.close();
    primary.close();
  }
}

/** The name of the worker that serves a connection. */
const serverOf = async (client: net.Socket): Promise<string> => String((await once(client, 'data'))[0]);

test('a connection waits for a worker, goes to another one if that worker ends, and to one only', () =>
  withDistributor(async (distributor, start, connect) => {
    const client = await connect();
    const served = serverOf(client);
    const first = start('first', hangs);
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    const second = start('second', holds);
    assert.equal(await served, 'second');
    const third = start('third', holds);
    distributor.remove(second.child);
    assert.equal(await serverOf(await connect()), 'third');
    await until('the primary knows', () => third.messages.length > 0);
    assert.deepEqual([second.messages, third.messages], [['taken'], ['taken']]);
    const late = await connect();
    distributor.remove(third.child);
    const refused = await connect();
    distributor.close();
    const unused = start('unused', holds);
    const tooLate = await connect();
    assert.equal(await serverOf(late), 'third');
    late.write('end');
    await until('all are closed', () => [refused, tooLate, late].every((each) => each.resume().closed));
    assert.deepEqual(unused.messages, []);
  }));

/** A distributor, workers of it without processes, and the names of those that were handed a connection, one for each. */
function withoutProcesses() {
  const distributor = openDistributor();
  const given: string[] = [];
  const start = (name: string, takes: boolean, connected = true) => {
    const events = new EventEmitter();
    const take = (id: number): boolean => events.emit('message', { kind: 'taken', id });
    const ids: number[] = [];
    const send = ({ id }: { readonly id: number }): boolean => {
      given.push(name);
      ids.push(id);
      return takes && take(id);
    };
    const worker = Object.assign(events, { connected, send });
    distributor.add(worker as EventEmitter as ChildProcess); // it uses nothing else of it
    return {
      /** One of its connections has ended. */
      release: () => void events.emit('message', { kind: 'released' }),
      takeLast: () => void take(ids.at(-1) ?? 0),
      disconnect: () => {
        worker.connected = false;
      },
      exit: () => void events.emit('exit'),
    };
  };
  const give = (count: number): readonly net.Socket[] => {
    const sockets = Array.from({ length: count }, () => new net.Socket());
    for (const socket of sockets) distributor.give(socket, 'api');
    return sockets;
  };
  return { distributor, given, start, give };
}

test('a worker that takes its connections gets the next one, and of several the one with the fewest open ones', () => {
  const { given, start, give } = withoutProcesses();
  start('busy', false);
  const { release } = start('one', true);
  start('other', true);
  give(5);
  assert.deepEqual(given.splice(0), ['busy', 'one', 'other', 'one', 'other']);
  release();
  release();
  give(2);
  assert.deepEqual(given, ['one', 'one']);
});

test('what an ended worker took goes to no other, also if that is heard after its end, and it gets no more connections', async () => {
  const { given, start, give } = withoutProcesses();
  const ending = start('ending', false);
  give(2);
  ending.exit();
  start('other', false);
  give(3);
  for (let round = 0; round < 5; round += 1) await nextRound();
  assert.deepEqual(given.splice(0), ['ending', 'ending', 'other', 'other', 'other']);
  ending.takeLast();
  ending.disconnect();
  for (let round = 0; round < 5; round += 1) await nextRound();
  assert.deepEqual(given, ['other'], 'the connection that it did not take');
});

test('a worker that can be sent nothing gets no connection, although it has not ended', () => {
  const { given, start, give } = withoutProcesses();
  start('leaving', true, false);
  give(1);
  assert.deepEqual(given, []);
  start('other', true);
  assert.deepEqual(given, ['other']);
});

test('a connection that was handed to a worker which ends waits for the rest of its ten seconds', async (t) => {
  const pass = holdTime(t);
  const { start, give } = withoutProcesses();
  const [waited] = give(1);
  const ending = start('ending', false);
  const [handedOver] = give(1);
  pass(6_000);
  const [later] = give(1);
  pass(3_999);
  ending.disconnect();
  ending.exit();
  for (let round = 0; round < 5; round += 1) await nextRound();
  const areClosed = () => [waited, handedOver, later].map((each) => each?.destroyed);
  assert.deepEqual(areClosed(), [false, false, false]);
  pass(1);
  assert.deepEqual(areClosed(), [true, true, false]);
});

test('a connection that a worker got after a wait stays open until the worker has taken it', (t) => {
  const pass = holdTime(t);
  const { start, give } = withoutProcesses();
  const [connection] = give(1);
  const { takeLast } = start('busy', false);
  pass(60_000);
  assert.equal(connection?.destroyed, false);
  takeLast();
  assert.equal(connection?.destroyed, true);
});

test('a limited number of connections waits for a worker, and each for ten seconds altogether', (t) => {
  const pass = holdTime(t);
  const { distributor, given, start, give } = withoutProcesses();
  const [first, ...others] = give(mostWaiting);
  assert.deepEqual(
    give(1).map(({ destroyed }) => destroyed),
    [true],
  );
  pass(6_000);
  start('leaving', true, false); // so that they wait again
  pass(3_999);
  assert.equal(first?.destroyed, false);
  pass(1);
  assert.ok([first, ...others].every((each) => each?.destroyed));
  const last = give(1);
  distributor.close();
  assert.deepEqual(
    [...last, ...give(1)].map(({ destroyed }) => destroyed),
    [true, true],
  );
  assert.deepEqual(given, []);
});
