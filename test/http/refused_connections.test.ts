/** Connections on which the server has sent its last answer, but the client does not close its side. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { Hono } from 'hono';
import type { HonoEnv } from '../../src/http/exchange.ts';
import { createApiServer } from '../../src/http/server/server.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { until } from '../support/until.ts';

const cases = [
  { what: 'nothing is said', said: '', tls: false },
  { what: 'a request does not end', said: 'GET / HTTP/1.1\r\n', tls: false },
  { what: 'a request is none', said: 'HELLO\r\n\r\n', tls: false },
  { what: 'a request has two hosts', said: 'GET / HTTP/1.1\r\nHost: one\r\nHost: two\r\n\r\n', tls: false },
  { what: 'no TLS is spoken', said: 'GET / HTTP/1.1\r\nHost: one\r\n\r\n', tls: true },
  { what: 'a TLS handshake does not begin', said: '', tls: true },
];

for (const { what, said, tls } of cases) {
  test(`if ${what}, the server closes the connection although the client keeps it open`, async () => {
    const api = createApiServer(new Hono<HonoEnv>(), {
      clientTimeoutMs: 200,
      ...(tls ? { tls: selfSigned() } : {}),
    });
    await new Promise<void>((resolve) => api.server.listen(0, '127.0.0.1', resolve));
    const connected = new Promise((resolve) => api.server.once('connection', resolve));
    const { port } = api.server.address() as net.AddressInfo; // a TCP server has one
    const client = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
    try {
      client.resume().write(said);
      await connected;
      await until('no connection is open', async () => (await openConnections(api.server)) === 0);
    } finally {
      client.destroy();
      api.server.close();
    }
  });
}

test('an idle connection is kept for 75 s, so that load balancers close theirs sooner', () => {
  assert.equal(createApiServer(new Hono<HonoEnv>(), {}).server.keepAliveTimeout, 75_000);
});

const openConnections = (server: net.Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
