import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { socketFetch } from '../../src/cli/socket_fetch.ts';
import { issue } from '../keystone/certificate.ts';
import { mustFail, placement } from './command.ts';
import { type KeystoneServer, startKeystone } from './keystone_server.ts';
import { forward, startServer, type TestServer } from './servers.ts';

let server: TestServer;
let keystone: KeystoneServer;
before(async () => {
  server = await startServer();
  keystone = await startKeystone({ placementUrl: server.url });
});
after(async () => {
  await keystone.close();
  await server.close();
});

/** Checks that this environment is not enough to reach the service. */
const isWrong = (expected: RegExp, env: Readonly<Record<string, string>>) =>
  mustFail(expected, ['provider', 'list'], env, 'wrongUsage');

test('without a URL or credentials the error names the options to set', async () => {
  await isWrong(/URL of the placement service is missing.*OS_ENDPOINT=.*OS_TOKEN=admin.*OS_AUTH_URL/, {});
  await isWrong(/The credentials for .* are missing/, { OS_ENDPOINT: server.url });
  await isWrong(/The credentials are missing\. Set OS_USERNAME/, { OS_AUTH_URL: keystone.url });
  const nobody = { OS_AUTH_URL: keystone.url, OS_USERNAME: 'nova' };
  await isWrong(/The password of nova is missing\. Set OS_PASSWORD/, nobody);
  await isWrong(/is no URL\. Write it as http:/, {
    OS_ENDPOINT: 'localhost',
    OS_TOKEN: 'admin',
  });
  for (const endpoint of ['http://u:hunter2@127.0.0.1:9', `${server.url}?a=b`, `${server.url}#a`]) {
    const nowhere = /^error: The endpoint may have no user, no query and no fragment\. Write it as http:/;
    await isWrong(nowhere, { OS_ENDPOINT: endpoint, OS_TOKEN: 'admin' });
  }
  await isWrong(/is no URL/, { OS_ENDPOINT: `${server.url} `, OS_TOKEN: 'admin' });
  const login = { OS_USERNAME: 'nova', OS_PASSWORD: 'secret' };
  await isWrong(/The authUrl "keystone:5000" is no URL/, { ...login, OS_AUTH_URL: 'keystone:5000' });
  await isWrong(/The authUrl may have no user/, { ...login, OS_AUTH_URL: 'http://u:hunter2@127.0.0.1:9/v3' });
  for (const token of ['hunter2\nhunter2', 'hunter2€']) {
    await isWrong(/^error: The token has a character that no header may have/, {
      OS_ENDPOINT: server.url,
      OS_TOKEN: token,
    });
  }
  const release = ['allocation', 'delete', '5e08ea53-c4c6-448e-9334-ac4953de3cfa', '--if-match', '€'];
  await mustFail(/If-Match has a character/, release, { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' }, 'failed');
  await isWrong(/OS_ENDPOINT is "unix:placement\.sock"\. It must be unix: and the absolute name of a file/, {
    OS_ENDPOINT: 'unix:placement.sock',
    OS_TOKEN: 'admin',
  });
});

test('a UNIX socket is reached by its name, and the error names a socket that does not answer', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-socket-'));
  const socket = path.join(folder, 'api.sock');
  const env = { OS_ENDPOINT: `unix:${socket}`, OS_TOKEN: 'admin' };
  const away = new RegExp(`No answer from unix:${socket}: there is no such socket\\. Check its name`);
  await mustFail(away, ['provider', 'list'], env, 'noAnswer');
  const front = createServer((incoming, response) => forward(server.url, incoming, response));
  await new Promise<void>((resolve) => front.listen(socket, resolve));
  try {
    const aggregate = '5e08ea53-c4c6-448e-9334-ac4953de3cfa';
    for (const words of [
      ['provider', 'create', 'by-socket'],
      ['inventory', 'set', 'by-socket', 'VCPU=4'],
      ['trait', 'add', 'by-socket', 'HW_CPU_X86_VMX'],
      ['aggregate', 'add', 'by-socket', aggregate],
      ['provider', 'delete', 'by-socket'],
    ]) {
      const { code, stderr } = await placement(words, env);
      assert.deepEqual([code, stderr], [0, ''], words.join(' '));
    }
    await mustFail(/There is no provider "none"/, ['provider', 'show', 'none'], env, 'wrongInput');
  } finally {
    await new Promise((resolve) => front.close(resolve));
    await rm(folder, { recursive: true });
  }
});

test('a request to a UNIX socket ends with its signal, also after the garbage was collected', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-socket-'));
  const socket = path.join(folder, 'api.sock');
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  const silent = createServer(() => arrive());
  await new Promise<void>((resolve) => silent.listen(socket, resolve));
  try {
    const controller = new AbortController();
    const asked = socketFetch(socket, `unix:${socket}`)('http://localhost/', { signal: controller.signal });
    await arrived;
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')();
    controller.abort();
    await assert.rejects(Promise.race([asked, sleep(60_000, undefined, { ref: false })]), /aborted/);
  } finally {
    silent.closeAllConnections();
    await new Promise((resolve) => silent.close(resolve));
    await rm(folder, { recursive: true });
  }
});

test('a wrong path, and TLS where there is none, are distinguished from a service that does not answer', async () => {
  const none =
    /There is no path \/placement\/resource_providers here\. \[.*\]\nThere is no placement service at this path/;
  const list = ['provider', 'list'];
  await mustFail(none, list, { OS_ENDPOINT: `${server.url}/placement`, OS_TOKEN: 'admin' }, 'noAnswer');
  const secure = server.url.replace('http:', 'https:');
  const noTls = /No answer from https:\S+: it does not answer by TLS .* begins with http:\/\//;
  await mustFail(noTls, list, { OS_ENDPOINT: secure, OS_TOKEN: 'admin' }, 'noAnswer');
});

test('a file without certificates is refused, and a certificate that has expired is named as that', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-ca-'));
  const file = path.join(folder, 'ca.pem');
  const expired = issue({ name: 'test', seconds: -60 });
  const front = createTlsServer(expired, (incoming, response) => forward(server.url, incoming, response));
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const { port } = front.address() as AddressInfo; // it listens on TCP
  const env = { OS_ENDPOINT: `https://127.0.0.1:${port}`, OS_TOKEN: 'admin', OS_CACERT: file };
  try {
    const unusable = (why: string) => new RegExp(`^error: OS_CACERT names ${file}, which cannot be used: ${why}`);
    await isWrong(unusable('ENOENT'), env);
    await writeFile(file, expired.key);
    await isWrong(unusable('it has no certificate in PEM\\.'), env);
    await writeFile(file, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    await isWrong(unusable('.*PEM'), env);
    await writeFile(file, expired.cert);
    await mustFail(/No answer from https:\S+: its certificate.* has expired/, ['version'], env, 'noAnswer');
  } finally {
    await new Promise((resolve) => front.close(resolve));
    await rm(folder, { recursive: true });
  }
});

test('a port to which fetch never connects is named as that, at once', async () => {
  const barred = /No answer from http:\/\/127\.0\.0\.1:6000: fetch, as browsers, never connects to this port/;
  const started = performance.now();
  await mustFail(barred, ['provider', 'list'], { OS_ENDPOINT: 'http://127.0.0.1:6000', OS_TOKEN: 'admin' }, 'noAnswer');
  assert.ok(performance.now() - started < 10_000);
});

test('with the environment of the OpenStack client the command finds the service through Keystone', async () => {
  const openrc = {
    OS_AUTH_URL: `${keystone.url}/v3`,
    OS_USERNAME: 'nova',
    OS_PASSWORD: 'secret',
    OS_PROJECT_NAME: 'service',
    OS_USER_DOMAIN_NAME: 'Default',
    OS_PROJECT_DOMAIN_NAME: 'Default',
    OS_REGION_NAME: 'RegionOne',
    OS_INTERFACE: 'publicURL',
    OS_TOKEN: '',
  };
  server.seen.splice(0);
  const { code, stdout, stderr } = await placement(['provider', 'list', '--json'], openrc);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), []);
  assert.equal(server.seen.length, 1);
  await mustFail(/refuses the login of nova/, ['provider', 'list'], { ...openrc, OS_PASSWORD: 'wrong' }, 'forbidden');
  await mustFail(
    /no public endpoint of placement in region Nowhere/,
    ['provider', 'list', '--os-region-name', 'Nowhere'],
    openrc,
    'wrongUsage',
  );
});
