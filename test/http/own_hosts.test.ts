/**
 * Web pages whose host name resolves to this machine: without authentication only the check of the Host header keeps
 * them out.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { suite, test } from 'node:test';
import { parse } from 'yaml';
import { listen } from '../../src/http/server/listen.ts';
import { settingsFor } from '../keystone/stand_in.ts';
import { anyEngine } from '../support/engines.ts';
import { type ConfigOverrides, withTestService } from '../support/services.ts';

type Headers = Readonly<Record<string, string>>;
type Ask = (host: string, options?: { path?: string; method?: string; headers?: Headers }) => Promise<Reply>;
type Reply = { readonly status: number; readonly text: string };

/**
 * Calls back with a function that sends a request over a socket to a service with these options, as the user `admin`.
 */
const withAsk = (overrides: ConfigOverrides, use: (ask: Ask) => Promise<void>): Promise<void> =>
  withTestService(anyEngine, overrides, async ({ app }) => {
    const { url, close } = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 100 });
    try {
      await use(
        (host, { path = '/resource_providers', method = 'GET', headers = {} } = {}) =>
          new Promise((resolve, reject) => {
            const all = { 'x-auth-token': 'admin', ...headers, host };
            const request = http.request(url + path, { method, headers: all, agent: false }, async (response) => {
              let text = '';
              for await (const chunk of response.setEncoding('utf8')) text += chunk;
              resolve({ status: response.statusCode ?? 0, text });
            });
            request.once('error', reject).end(method === 'POST' ? '{"name": "made"}' : undefined);
          }),
      );
    } finally {
      await close();
    }
  });

const loopback = [
  '127.0.0.1',
  '127.0.0.1:8778',
  '127.9.8.7:80',
  'localhost',
  'LocalHost.:8778',
  'placement.localhost:8778',
  '[::1]',
  '[::1]:8778',
  '[::ffff:7f00:1]:8778',
  'localhost:',
  '[0:0:0:0:0:0:0:1]:8778',
  '[::ffff:127.0.0.1]',
];
const others = [
  'rebound.example.com',
  'rebound.example.com:8778',
  'localhost.example.com',
  'mylocalhost',
  '127.0.0.1.example.com',
  '192.0.2.1:8778',
  '0.0.0.0:8778',
  '[2001:db8::1]:8778',
];

suite('noauth2 on a loopback address', () => {
  test('answers requests to loopback names and addresses, and refuses any other host by its name', () =>
    withAsk({}, async (ask) => {
      for (const host of [...loopback, ...loopback]) assert.equal((await ask(host)).status, 200, host);
      for (const host of [...others, ...others]) {
        const { status, text } = await ask(host);
        assert.equal(status, 421, host);
        const [error] = JSON.parse(text).errors;
        const name = host.replace(/:8778$/, '').replace(/[[\]]/g, '');
        assert.ok(error.detail.includes(`The host ${name} is not one by which this service may be called.`), text);
        assert.match(error.detail, /allowed_hosts/);
      }
    }));

  test('refuses other hosts for every path and method', () =>
    withAsk({ cors: { allowedOrigin: ['*'] } }, async (ask) => {
      for (const path of ['/', '/metrics', '/healthcheck', '/readyz', '/nowhere', '/resource_providers']) {
        assert.equal((await ask('rebound.example.com', { path })).status, 421, path);
      }
      const origin = { origin: 'http://rebound.example.com', 'access-control-request-method': 'GET' };
      assert.equal((await ask('rebound.example.com', { method: 'OPTIONS', headers: origin })).status, 421);
      const made = { 'content-type': 'application/json' };
      assert.equal((await ask('rebound.example.com', { method: 'POST', headers: made })).status, 421);
      assert.equal((await ask('localhost')).text, '{"resource_providers":[]}');
    }));

  test('also answers requests to the hosts of [api] allowed_hosts', () =>
    withAsk(
      {
        api: {
          authStrategy: 'noauth2',
          allowedHosts: ['Placement.example.com', '[2001:db8::1]', '2001:0db8::2', '[::ffff:c000:201]'],
        },
      },
      async (ask) => {
        for (const host of [
          'localhost',
          'placement.example.com:80',
          'placement.example.com:',
          'PLACEMENT.EXAMPLE.COM.',
          '[2001:db8::1]:8778',
          '[2001:0DB8::0:1]',
          '[2001:db8::2]:8778',
          '[::ffff:192.0.2.1]',
        ]) {
          assert.equal((await ask(host)).status, 200, host);
        }
        for (const host of ['example.com', 'sub.placement.example.com', 'rebound.example.com']) {
          assert.equal((await ask(host)).status, 421, host);
        }
      },
    ));

  test('answers requests to any host if allowed_hosts is *', () =>
    withAsk({ api: { authStrategy: 'noauth2', allowedHosts: ['*'] } }, async (ask) => {
      for (const host of others) assert.equal((await ask(host)).status, 200, host);
    }));

  test('ignores the host in headers of proxies, because a page can send them as well', () =>
    withAsk({ osloMiddleware: { enableProxyHeadersParsing: true } }, async (ask) => {
      const lies = { 'x-forwarded-host': 'localhost', forwarded: 'host=localhost', 'x-forwarded-proto': 'http' };
      assert.equal((await ask('rebound.example.com', { headers: lies })).status, 421);
      // As from a proxy that sends its own Host.
      const truth = { 'x-forwarded-host': 'cloud.example.com' };
      assert.equal((await ask('127.0.0.1:8778', { headers: truth })).status, 200);
    }));
});

test('the service of deploy/compose.yaml, on all addresses, answers to its names only', async () => {
  const text = await readFile(path.join(import.meta.dirname, '../../deploy/compose.yaml'), 'utf8');
  const { environment, ports } = parse(text).services.api;
  assert.equal(environment.OS_API__AUTH_STRATEGY, 'noauth2');
  for (const port of ports) assert.match(port, /^127\.0\.0\.1:/);
  const allowedHosts = String(environment.OS_API__ALLOWED_HOSTS).split(',');
  for (const host of ['0.0.0.0', '::', '192.0.2.1']) {
    await withAsk({ api: { authStrategy: 'noauth2', host, allowedHosts } }, async (ask) => {
      for (const name of [...loopback, 'api:8778']) assert.equal((await ask(name)).status, 200, name);
      for (const name of others) assert.equal((await ask(name)).status, 421, name);
      assert.equal((await ask('rebound.example.com', { path: '/healthcheck' })).status, 421);
    });
  }
});

test('on another address without allowed_hosts, or with Keystone, the host is not checked', async () => {
  await withAsk({ api: { authStrategy: 'noauth2', host: '0.0.0.0' } }, async (ask) => {
    for (const host of others) assert.equal((await ask(host)).status, 200, host);
  });
  const keystoneAuthtoken = settingsFor({ url: 'http://127.0.0.1:1' });
  await withAsk({ api: { authStrategy: 'keystone' }, keystoneAuthtoken }, async (ask) => {
    for (const host of others) assert.equal((await ask(host, { path: '/' })).status, 200, host);
  });
});
