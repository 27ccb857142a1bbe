/** How placement-api ends after signals. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { until } from '../support/until.ts';
import { startCommand, withCommands } from './commands.ts';

const listens = /^placement-api \d\S* listens on (http:\/\/\S+)\n/m;

test('after SIGTERM every accepted request is answered, and the answers tell clients to connect elsewhere', async () => {
  await withCommands('embedded', 'migrated', async ({ folder, configFile }) => {
    const server = startCommand('placement-api', ['--config-file', configFile], folder);
    const [, url = ''] = await server.said(listens);
    const headers = { 'x-auth-token': 'admin', 'content-type': 'application/json' };

    // A client in the middle of its request.
    const name = 'made while the server ends';
    const body = JSON.stringify({ name });
    const slow = http.request(`${url}/resource_providers`, {
      method: 'POST',
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    });
    const slowAnswer = new Promise<http.IncomingMessage>((resolve, reject) => {
      slow.once('response', resolve);
      slow.once('error', reject);
    });
    slowAnswer.catch(() => {}); // the await below throws the error
    slow.write(body.slice(0, 5));
    // A client that sends nothing does not delay the end.
    const silent = net.connect(Number(new URL(url).port), '127.0.0.1');
    silent.on('error', () => {});
    const silentIsClosed = once(silent.resume(), 'close');

    // Clients that send one request after the other, on connections that are kept alive.
    const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    let sent = 0;
    let answered = 0;
    let stopped = false;
    const problems: string[] = [];
    const client = async (): Promise<void> => {
      while (!stopped) {
        sent += 1;
        try {
          const status = await get(`${url}/traits/HW_CPU_X86_AVX2`, agent);
          if (status === 204) answered += 1;
        } catch (error) {
          // The socket is closed, so this request never began.
          const refused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
          if (refused) sent -= 1;
          else problems.push(String(error));
          stopped = true;
        }
      }
    };
    const clients = Array.from({ length: 8 }, client);
    await until('the clients are at it', () => answered >= 50 || stopped);
    const signalled = performance.now();
    server.child.kill('SIGTERM');
    await Promise.all(clients);
    assert.deepEqual(problems, []);
    assert.equal(answered, sent);

    await silentIsClosed;
    assert.equal(server.child.exitCode, null, 'it waits for the slow request');
    slow.end(body.slice(5));
    const response = await slowAnswer;
    response.resume();
    assert.equal(response.statusCode, 201);
    assert.equal(response.headers.connection, 'close');
    const { code } = await server.ended;
    assert.equal(code, 0);
    assert.ok(performance.now() - signalled < 10_000);
    agent.destroy();
  });
});

test('a second signal ends the service at once', async () => {
  await withCommands('embedded', 'migrated', async ({ folder, configFile }) => {
    const server = startCommand('placement-api', ['--config-file', configFile], folder);
    const [, url = ''] = await server.said(listens);
    const headers = { 'x-auth-token': 'admin', 'content-type': 'application/json', expect: '100-continue' };
    const slow = http.request(`${url}/resource_providers`, { method: 'POST', headers });
    slow.on('error', () => {});
    slow.flushHeaders();
    await once(slow, 'continue'); // so the service has received it
    server.child.kill('SIGTERM');
    await untilRefused(url);
    assert.equal(server.child.exitCode, null, 'the first signal waits for the request');
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 143);
  });
});

/** Waits until nothing listens at a URL any more. */
const untilRefused = (url: string): Promise<void> =>
  until('connections are refused', () =>
    fetch(url, { headers: { connection: 'close' } }).then(
      () => false,
      (error: { readonly cause?: { readonly code?: string } }) => error.cause?.code === 'ECONNREFUSED',
    ),
  );

function get(url: string, agent: http.Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 1.6' };
    const request = http.get(url, { agent, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', reject);
    });
    request.once('error', reject);
  });
}
