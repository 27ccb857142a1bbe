/** The connections that the primary process hands to its workers. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { test } from 'node:test';
import tls from 'node:tls';
import type { FromWorker } from '../../src/workers/messages.ts';
import { openDistributor } from '../../src/workers/supervisor.ts';
import { takeConnections } from '../../src/workers/worker.ts';
import { selfSigned } from '../keystone/certificate.ts';
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

test('a worker that takes its connections gets the next one, and of several the one with the fewest open ones', () => {
  const distributor = openDistributor();
  const given: string[] = [];
  /** Adds a worker without a process. @returns a function that says that a connection of it has ended */
  const start = (name: string, takes: boolean): (() => void) => {
    const events = new EventEmitter();
    const send = ({ id }: { readonly id: number }): boolean => {
      given.push(name);
      return takes && events.emit('message', { kind: 'taken', id });
    };
    distributor.add(Object.assign(events, { connected: true, send }) as ChildProcess); // it uses nothing else of it
    return () => void events.emit('message', { kind: 'released' });
  };
  const give = (count: number): void => {
    for (let each = 0; each < count; each += 1) distributor.give(new net.Socket(), 'api');
  };
  start('busy', false);
  const release = start('one', true);
  start('other', true);
  give(5);
  assert.deepEqual(given.splice(0), ['busy', 'one', 'other', 'one', 'other']);
  release();
  release();
  give(2);
  assert.deepEqual(given, ['one', 'one']);
});
