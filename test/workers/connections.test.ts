import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { test } from 'node:test';
import tls from 'node:tls';
import type { FromWorker } from '../../src/workers/messages.ts';
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
