/** A burst of connections waits for a process that is busy, instead of being dropped by the kernel. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import net from 'node:net';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

/** A server that listens as the service does, and never accepts: its thread waits for ever. */
const busyServer = `
  const { parentPort } = require('node:worker_threads');
  const net = require('node:net');
  import(${JSON.stringify(import.meta.resolve('../../src/http/server/listen.ts'))})
    .then(({ bind }) => bind(net.createServer(), { host: '127.0.0.1', port: 0 }))
    .then((address) => {
      parentPort.postMessage(address);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });
`;

test('1,000 connections that come at once wait to be accepted', async (t) => {
  const allowed = Number(await readFile('/proc/sys/net/core/somaxconn', 'utf8').catch(() => 0));
  if (allowed < 1000) return t.skip('The kernel of this machine lets fewer connections wait.');
  const busy = new Worker(busyServer, { eval: true });
  const opened: net.Socket[] = [];
  try {
    const [address] = await once(busy, 'message');
    const port = Number(String(address).split(':').at(-1));
    const connected = Array.from({ length: 1000 }, async () => {
      const socket = net.connect(port, '127.0.0.1');
      opened.push(socket);
      await once(socket, 'connect');
    });
    await Promise.all(connected);
    assert.equal(opened.length, 1000);
  } finally {
    for (const socket of opened) socket.destroy();
    await busy.terminate();
  }
});
