/** Access to /metrics: with a token, or at another address. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, defaultConfig } from '../../src/config/config.ts';
import { metricsAddress } from '../../src/http/metrics.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { runToEnd, startCommand, withCommands } from '../manage/commands.ts';
import { anyEngine, engines } from '../support/engines.ts';
import { freePort } from '../support/free_port.ts';
import { type ConfigOverrides, withTestService } from '../support/services.ts';

const status = async ({ app }: PlacementService, headers: Readonly<Record<string, string>> = {}, method = 'GET') => {
  const answer = await app.request('/metrics', { headers, method });
  if (answer.status === 200) assert.match(await answer.text(), method === 'HEAD' ? /^$/ : /^# HELP /);
  return answer.status;
};

const withToken: ConfigOverrides = { metrics: { requireToken: true } };

suite('[metrics] require_token', () => {
  test('with noauth2 administrators and services may read, and no request without a token', () =>
    withTestService(anyEngine, withToken, async (service) => {
      assert.equal(await status(service), 401);
      assert.equal(await status(service, { 'x-auth-token': 'somebody' }), 403);
      assert.equal(await status(service, { 'x-auth-token': 'somebody', 'x-roles': 'reader' }), 403);
      assert.equal(await status(service, { 'x-auth-token': 'somebody', 'x-roles': 'service' }), 200);
      assert.equal(await status(service, { 'x-auth-token': 'admin' }), 200);
      assert.equal(await status(service, {}, 'HEAD'), 401);
      assert.equal(await status(service, { 'x-auth-token': 'admin' }, 'HEAD'), 200);
      // The other probes have no data that needs a token.
      assert.equal((await service.app.request('/healthcheck')).status, 200);
    }));

  test('with Keystone only tokens that the rule placement:metrics:show accepts may read', () =>
    withStandIn((standIn) =>
      withCommands('embedded', 'empty', async ({ folder }) => {
        const policyFile = path.join(folder, 'policy.yaml');
        await writeFile(policyFile, '"placement:metrics:show": "role:monitoring"\n');
        const overrides: ConfigOverrides = {
          ...withToken,
          api: { authStrategy: 'keystone' },
          keystoneAuthtoken: settingsFor(standIn),
          osloPolicy: { policyFile },
        };
        await withTestService(anyEngine, overrides, async (service) => {
          const token = (role: string) => ({ 'x-auth-token': standIn.issue({ roles: [role], project: 'p1' }) });
          assert.equal(await status(service), 401);
          assert.equal(await status(service, { 'x-auth-token': 'nonsense' }), 401);
          assert.equal(await status(service, token('admin')), 403);
          assert.equal(await status(service, token('monitoring')), 200);
          await standIn.down();
          assert.equal(await status(service, token('monitoring')), 503);
        });
      }),
    ));

  test('without require_token every client may read', () =>
    withTestService(anyEngine, {}, async (service) => assert.equal(await status(service), 200)));
});

test('the address of /metrics is that of the API, except for the parts that are set', () => {
  const addressOf = (metrics: Partial<Config['metrics']>, api: Partial<Config['api']> = {}) => {
    const address = metricsAddress({
      api: { ...defaultConfig.api, ...api },
      metrics: { ...defaultConfig.metrics, ...metrics },
    });
    return address && { host: address.host, port: address.port };
  };
  assert.equal(addressOf({}), undefined);
  assert.deepEqual(addressOf({ port: 9778 }), { host: '127.0.0.1', port: 9778 });
  assert.deepEqual(addressOf({ host: '10.0.0.5' }), { host: '10.0.0.5', port: 8778 });
  assert.deepEqual(addressOf({ host: '10.0.0.5', port: 1 }, { port: 2 }), { host: '10.0.0.5', port: 1 });
  assert.equal(addressOf({ host: '127.0.0.1', port: 8778 }), undefined, 'it is the same address');
  assert.deepEqual(addressOf({ port: 0 }, { port: 0 }), { host: '127.0.0.1', port: 0 });
  assert.equal(addressOf({ port: 9778, enabled: false }), undefined);
  assert.equal(addressOf({ host: 'unix:/a', port: 1 }, { host: 'unix:/a' }), undefined, 'a socket has no port');
  assert.deepEqual(addressOf({ host: '10.0.0.5' }, { host: 'unix:/a' }), { host: '10.0.0.5', port: 8778 });
});

for (const [engine, workers] of [...engines.map((engine) => [engine, 1] as const), ['postgresql', 2]] as const) {
  test(`[metrics] port serves /metrics alone, and the API does not, on ${engine} with ${workers} processes`, () =>
    withCommands(
      engine,
      'migrated',
      async ({ folder, configFile }) => {
        const args = ['--config-file', configFile, '--workers', `${workers}`];
        const server = startCommand('placement-api', args, folder);
        const [, metricsUrl = ''] = await server.said(/serves \/metrics on (\S+)\n/);
        const [, url = ''] = await server.said(/ listens on (\S+)\n/);
        assert.notEqual(metricsUrl, url);
        const admin = { 'x-auth-token': 'admin' };
        const statusOf = async (base: string, at: string, headers = {}) => {
          const answer = await fetch(base + at, { headers });
          return [answer.status, await answer.text()] as const;
        };
        const ofApi = await statusOf(url, '/resource_providers', admin);
        assert.deepEqual(ofApi, [200, '{"resource_providers":[]}']);
        assert.equal((await statusOf(url, '/metrics', admin))[0], 404);
        assert.equal((await statusOf(url, '/metrics'))[0], 401);
        assert.equal((await statusOf(url, '/healthcheck'))[0], 200);
        for (const at of ['/', '/resource_providers', '/healthcheck', '/metrics/x']) {
          assert.equal((await statusOf(metricsUrl, at, admin))[0], 404, at);
        }
        const [code, text] = await statusOf(metricsUrl, '/metrics');
        assert.equal(code, 200);
        assert.match(text, /^placement_requests_total\{method="GET",route="\/resource_providers",status="200"/m);
        if (workers > 1) {
          for (const worker of [1, 2])
            assert.match(text, new RegExp(`^placement_build_info\\{.*worker="${worker}"`, 'm'));
        }
        server.child.kill('SIGTERM');
        const { code: exit, stderr } = await server.ended;
        assert.equal(exit, 0);
        assert.doesNotMatch(stderr, /"level":"(error|warn)"/);
      },
      // On a busy machine a statement may be slow.
      '[metrics]\nport = 0\n[placement_database]\nslow_statement_ms = -1\n',
    ));
}

test('a token can be required on [metrics] port too, and a page that rebinds its host name is refused', () =>
  withTestService(anyEngine, { metrics: { requireToken: true, port: 9778 } }, async ({ app, metricsApp }) => {
    assert.ok(metricsApp);
    const ask = async (headers: Readonly<Record<string, string>>) =>
      (await metricsApp.request('/metrics', { headers })).status;
    assert.equal(await ask({}), 401);
    assert.equal(await ask({ 'x-auth-token': 'somebody' }), 403);
    assert.equal(await ask({ 'x-auth-token': 'admin' }), 200);
    assert.equal(await ask({ 'x-auth-token': 'admin', host: 'localhost:9778' }), 200);
    assert.equal(await ask({ 'x-auth-token': 'admin', host: 'rebound.example.com:9778' }), 421);
    assert.equal((await app.request('/metrics', { headers: { 'x-auth-token': 'admin' } })).status, 404);
  }));

for (const workers of [1, 2]) {
  test(`an address that cannot be used ends the start of ${workers} processes with a message`, async () => {
    const port = await freePort();
    await withCommands(
      'postgresql',
      'migrated',
      async ({ folder, configFile }) => {
        const args = ['--config-file', configFile, '--port', `${port}`, '--workers', `${workers}`];
        // 0.0.0.0 and 127.0.0.1 share their ports.
        const { code, stderr } = await Promise.race([
          runToEnd('placement-api', args, folder),
          sleep(60_000, { code: undefined, stderr: 'It goes on.' }, { ref: false }),
        ]);
        assert.equal(code, 71, stderr);
        assert.doesNotMatch(stderr, /This worker serves/);
        assert.match(stderr, /Cannot listen on .*\[metrics\] port|Cannot listen on 127\.0\.0\.1/);
      },
      '[metrics]\nhost = 0.0.0.0\n',
    );
  });
}
