/** Every valid form of the Host header is accepted, and requests of HTTP/1.0 without it, as load balancers send them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { suite, test } from 'node:test';
import tls from 'node:tls';
import { listen } from '../../src/http/server/listen.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { anyEngine } from '../support/engines.ts';
import { freePort } from '../support/free_port.ts';
import { type ConfigOverrides, withTestService } from '../support/services.ts';

/** Says something to a port, and reads the answer until the server closes the connection. */
const answerOf = (port: number, secure: boolean, said: string, address = '127.0.0.1'): Promise<string> =>
  new Promise((resolve, reject) => {
    const client = secure
      ? tls.connect({ port, host: address, rejectUnauthorized: false })
      : net.connect({ port, host: address });
    let answer = '';
    client.setEncoding('latin1').on('data', (more) => {
      answer += more;
    });
    client.once('close', () => resolve(answer)).once('error', reject);
    client.write(said);
  });

type Served = { readonly port: number; readonly metricsPort: number; readonly secure: boolean };

/** Calls back with a service on sockets: by plain HTTP and by TLS. */
async function withPorts(overrides: ConfigOverrides, use: (served: Served) => Promise<void>, host = '127.0.0.1') {
  const metrics = { enabled: true, host: '127.0.0.1', port: await freePort() };
  await withTestService(anyEngine, { metrics, ...overrides }, async ({ app, metricsApp }) => {
    assert.ok(metricsApp);
    for (const secure of [false, true]) {
      const options = { host, port: 0, drainMs: 100, ...(secure ? { tls: selfSigned() } : {}) };
      const servers = await Promise.all([listen(app, options), listen(metricsApp, options)]);
      const [port = 0, metricsPort = 0] = servers.map(({ url }) => Number(new URL(url).port));
      try {
        await use({ port, metricsPort, secure });
      } finally {
        await Promise.all(servers.map(({ close }) => close()));
      }
    }
  });
}

const anyHost: ConfigOverrides = { api: { authStrategy: 'noauth2', host: '0.0.0.0' } };

/** Creates a provider. @returns the authority of the link to it */
async function linkOf({ port, secure }: Served, version: string, hosts: readonly string[], address?: string) {
  const uuid = randomUUID();
  const body = JSON.stringify({ name: uuid, uuid });
  const headers = [
    `POST /resource_providers HTTP/${version}`,
    ...hosts.map((host) => `Host: ${host}`),
    'X-Auth-Token: admin',
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  const answer = await answerOf(port, secure, `${headers.join('\r\n')}\r\n\r\n${body}`, address);
  assert.match(answer, /^HTTP\/1.1 201 /, hosts.join());
  const location = /^location: (\S+)\r$/im.exec(answer)?.[1] ?? '';
  const rest = `/resource_providers/${uuid}`;
  assert.ok(location.endsWith(rest), location);
  return location.slice(0, -rest.length);
}

suite('a Host header', () => {
  test('may have every form that RFC 3986 has for a host, and links have it in the form of a URL', () =>
    withPorts(anyHost, async (served) => {
      const scheme = served.secure ? 'https' : 'http';
      const usualPort = served.secure ? 443 : 80;
      for (const [host, inLinks = host] of [
        ['placement.example.com'],
        ['placement.example.com:8778'],
        ['Placement.EXAMPLE.com', 'placement.example.com'],
        ['placement.example.com:', 'placement.example.com'],
        [`placement.example.com:${usualPort}`, 'placement.example.com'],
        ['placement_1.example.com.'],
        ['192.0.2.1:65535'],
        ['[2001:db8::1]:8778'],
        ['[2001:0db8::1]', '[2001:db8::1]'],
        ['[2001:0db8:0:0:0:0:0:1]:8778', '[2001:db8::1]:8778'],
        ['[2001:DB8::A]:', '[2001:db8::a]'],
        ['[::ffff:10.1.2.3]:8778', '[::ffff:a01:203]:8778'],
        ['[::FFFF:0a01:0203]', '[::ffff:a01:203]'],
        ['[fe80::1%25eth0]:8778', '[fe80::1]:8778'],
        ['[fe80::1%eth0]', '[fe80::1]'],
        ["a!$&'()*+,;=~b"],
      ] as const) {
        assert.equal(await linkOf(served, '1.1', [host]), `${scheme}://${inLinks}`);
      }
    }));

  test('that is missing in a request of HTTP/1.0, or empty, means the address that the client has called', () =>
    withPorts(anyHost, async (served) => {
      const own = `${served.secure ? 'https' : 'http'}://127.0.0.1:${served.port}`;
      assert.equal(await linkOf(served, '1.0', []), own);
      assert.equal(await linkOf(served, '1.0', ['']), own);
      assert.equal(await linkOf(served, '1.1', ['']), own);
    }));

  test('that is missing, on an IPv6 address', async (t) => {
    const hasIpv6 = await new Promise((resolve) => {
      const probe = net.createServer().once('error', () => resolve(false));
      probe.listen(0, '::1', () => probe.close(() => resolve(true)));
    });
    if (!hasIpv6) {
      t.skip('this machine has no IPv6');
      return;
    }
    await withPorts(
      anyHost,
      async (served) => {
        const scheme = served.secure ? 'https' : 'http';
        assert.equal(await linkOf(served, '1.0', [], '::1'), `${scheme}://[::1]:${served.port}`);
        assert.equal(await linkOf(served, '1.0', [], '127.0.0.1'), `${scheme}://127.0.0.1:${served.port}`);
      },
      '::',
    );
  });
});

test('health checks are answered by GET, HEAD and OPTIONS, with and without a host, where the host is checked', () =>
  withPorts({}, async ({ port, metricsPort, secure }) => {
    const heads = ['HTTP/1.0\r\n', 'HTTP/1.0\r\nHost:\r\n', 'HTTP/1.1\r\nHost: localhost:\r\nConnection: close\r\n'];
    for (const [path, at] of [
      ['/', port],
      ['/healthcheck', port],
      ['/readyz', port],
      ['/metrics', metricsPort],
    ] as const) {
      for (const head of heads) {
        for (const method of ['GET', 'HEAD', 'OPTIONS']) {
          const answer = await answerOf(at, secure, `${method} ${path} ${head}\r\n`);
          const expected = method === 'HEAD' && at === port && path !== '/' ? 204 : 200;
          assert.ok(answer.startsWith(`HTTP/1.1 ${expected} `), `${method} ${path} ${head}: ${answer}`);
          if (method === 'HEAD') assert.ok(answer.endsWith('\r\n\r\n'), 'an answer to HEAD has no body');
        }
      }
    }
    const star = await answerOf(port, secure, 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    assert.match(star, /^HTTP\/1\.1 200 OK\r\nallow: GET, HEAD, OPTIONS\r\n/);
    const other = await answerOf(port, secure, 'GET / HTTP/1.0\r\nHost: rebound.example.com\r\n\r\n');
    assert.match(other, /^HTTP\/1\.1 421 /);
  }));

test('OPTIONS of the probes says that the database is down, also where pages of other origins may call', () =>
  withTestService(anyEngine, { cors: { allowedOrigin: ['*'] } }, async ({ app, database }) => {
    const statusOf = async (headers: Readonly<Record<string, string>> = {}) =>
      (await app.request('/healthcheck', { method: 'OPTIONS', headers })).status;
    const preflight = { origin: 'http://a', 'access-control-request-method': 'GET' };
    assert.deepEqual([await statusOf(), await statusOf(preflight)], [200, 200]);
    await database.kysely.schema.alterTable('provider_changes').renameTo('elsewhere').execute();
    assert.deepEqual([await statusOf(), await statusOf(preflight)], [503, 200]);
  }));
