/** Claims that wait behind HAProxy with the configuration of deploy/, and at a service of several processes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCommand, withCommands } from '../manage/commands.ts';
import { freePort } from '../support/free_port.ts';
import { hasHaproxy, startHaproxy } from '../support/haproxy.ts';
import { at } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { claimOne, clientOf, type Reply, rowsOf, takeOnlyOne, untilListed, type WaitingClient } from './client.ts';

type Service = { readonly client: WaitingClient; stop(): Promise<void>; start(): Promise<void> };

/** Calls back with services on one PostgreSQL. @param args further arguments of each */
const withServices = (
  count: number,
  args: readonly string[],
  use: (services: readonly Service[], ports: readonly number[]) => Promise<void>,
): Promise<void> =>
  withCommands('postgresql', 'migrated', async ({ configFile, folder }) => {
    const ports = await Promise.all(Array.from({ length: count }, freePort));
    const services = ports.map((port): Service => {
      let running: ReturnType<typeof startCommand> | undefined;
      return {
        client: clientOf(`http://127.0.0.1:${port}`),
        start: async () => {
          running = startCommand('placement-api', ['--config-file', configFile, '--port', `${port}`, ...args], folder);
          await running.said(/^placement-api \S+ listens on /m);
        },
        stop: async () => {
          running?.child.kill('SIGTERM');
          const end = await running?.ended;
          running = undefined;
          if (end !== undefined) assert.equal(end.code, 0, end.stderr);
        },
      };
    });
    try {
      for (const { start } of services) await start();
      await use(services, ports);
    } finally {
      for (const { client } of services) client.close();
      await Promise.all(services.map(({ stop }) => stop()));
    }
  });

/** The same with HAProxy before two services. @param change changes its configuration */
async function withProxy(
  t: TestContext,
  use: (client: WaitingClient, services: readonly Service[]) => Promise<void>,
  change = (config: string): string => config,
): Promise<void> {
  if (!hasHaproxy()) {
    t.skip('haproxy is not installed');
    return;
  }
  const deployed = await readFile(path.join(import.meta.dirname, '..', '..', 'deploy', 'haproxy.cfg'), 'utf8');
  await withServices(2, [], async (services, ports) => {
    const port = await freePort();
    const servers = ports.map((each, index) => `server p${index} 127.0.0.1:${each}`).join('\n  ');
    const config = change(deployed)
      .replace('bind :8779', `bind 127.0.0.1:${port}`)
      .replaceAll('server p1 127.0.0.1:8778', servers);
    const client = clientOf(`http://127.0.0.1:${port}`);
    const proxy = await startHaproxy(config, async () => {
      assert.equal((await client.send('GET', '/readyz')).status, 200);
    });
    try {
      await use(client, services);
    } finally {
      client.close();
      await proxy.stop();
    }
  });
}

test('behind HAProxy a claim whose client has left is not placed', (t) =>
  withProxy(t, async (client) => {
    const holder = await takeOnlyOne(client);
    const [first, second] = [randomUUID(), randomUUID()];
    const gone = new AbortController();
    const left = claimOne(client, first, undefined, gone.signal).catch(() => 'cut');
    await untilListed(client, [first]);
    const next = claimOne(client, second);
    await untilListed(client, [first, second]);
    gone.abort();
    assert.equal(await left, 'cut');
    await untilListed(client, [second]);
    await client.send('DELETE', `/allocations/${holder}`);
    assert.equal((await next).status, 200);
    assert.deepEqual(at((await client.send('GET', `/allocations/${first}`)).body, 'allocations'), {});
  }));

test('behind HAProxy without abortonclose a claim waits on, and has its place back where its client asks again', (t) =>
  withProxy(
    t,
    async (client) => {
      const holder = await takeOnlyOne(client);
      const [first, second] = [randomUUID(), randomUUID()];
      const gone = new AbortController();
      const left = claimOne(client, first, 'gpu', gone.signal).catch(() => 'cut');
      await untilListed(client, [first]);
      const next = claimOne(client, second, 'gpu');
      await untilListed(client, [first, second]);
      const [before] = await rowsOf(client);
      gone.abort();
      assert.equal(await left, 'cut');
      await sleep(1_000);
      await untilListed(client, [first, second]);
      const again = claimOne(client, first, 'gpu');
      await until(
        'the later request waits',
        async () => at((await rowsOf(client))[0], 'until') !== at(before, 'until'),
      );
      await untilListed(client, [first, second]);
      assert.equal(at((await rowsOf(client))[0], 'number'), at(before, 'number'));
      await client.send('DELETE', `/allocations/${holder}`);
      assert.equal((await again).status, 200);
      await client.send('DELETE', `/allocations/${first}`);
      assert.equal((await next).status, 200);
    },
    (config) => config.replace('option abortonclose', ''),
  ));

/** Asks again, as a client does, until the claim is placed. @returns what was answered before, and when it was placed */
async function askUntilPlaced(client: WaitingClient, uuid: string, line?: string): Promise<readonly Reply[]> {
  const refusals: Reply[] = [];
  for (;;) {
    const reply = await claimOne(client, uuid, line);
    if (reply.status === 200) return refusals;
    refusals.push(reply);
    assert.equal(reply.status, 503);
    const seconds = Number(reply.headers['retry-after']);
    assert.ok(seconds >= 1 && seconds <= 3, `${seconds}`);
    await sleep(seconds * 1000);
  }
}

test('in a rolling restart behind HAProxy every claim has its answer, and the claims of a line keep their order', (t) =>
  withProxy(t, async (client, services) => {
    const holder = await takeOnlyOne(client);
    const inLine: string[] = Array.from({ length: 8 }, () => randomUUID());
    const others = Array.from({ length: 4 }, () => randomUUID());
    const placed: string[] = [];
    const refusals: Reply[] = [];
    const go = async (uuid: string, line?: string): Promise<void> => {
      refusals.push(...(await askUntilPlaced(client, uuid, line)));
      placed.push(uuid);
      await client.send('DELETE', `/allocations/${uuid}`);
    };
    const done: Promise<void>[] = [];
    for (const uuid of inLine) {
      done.push(go(uuid, 'gpu'));
      await until(`${uuid} waits`, async () => (await rowsOf(client)).length === done.length);
    }
    done.push(...others.map((uuid) => go(uuid)));
    const numbers = async (): Promise<unknown> =>
      (await rowsOf(client)).filter((row) => at(row, 'line') === 'gpu').map((row) => at(row, 'number'));
    await until('all wait', async () => (await rowsOf(client)).length === done.length);
    const before = await numbers();
    for (const { stop, start } of services) {
      await stop();
      await start();
      await until('all wait again', async () => (await rowsOf(client)).length === done.length);
      // HAProxy has found it up again.
      await sleep(1_500);
    }
    assert.deepEqual(await numbers(), before);
    assert.deepEqual(placed, []);
    await client.send('DELETE', `/allocations/${holder}`);
    await Promise.all(done);
    assert.ok(refusals.length >= done.length / 2, `${refusals.length} were told to ask again`);
    assert.deepEqual(
      placed.filter((uuid) => inLine.includes(uuid)),
      inLine,
    );
    assert.equal(placed.length, done.length);
  }));

test('the workers of a service share its lines, and each of them answers its claims when it ends', () =>
  withServices(1, ['--workers', '2'], async ([service]) => {
    assert.ok(service);
    const { client } = service;
    const holder = await takeOnlyOne(client);
    const consumers = Array.from({ length: 12 }, () => randomUUID());
    const answers = [];
    for (const [index, uuid] of consumers.entries()) {
      answers.push(claimOne(client, uuid, 'gpu'));
      await untilListed(client, consumers.slice(0, index + 1));
    }
    for (const [index, uuid] of [holder, ...consumers.slice(0, 3)].entries()) {
      await client.send('DELETE', `/allocations/${uuid}`);
      assert.equal((await answers[index])?.status, 200);
    }
    await untilListed(client, consumers.slice(4));
    await service.stop();
    for (const answer of answers.slice(4)) {
      const { status, headers } = await answer;
      assert.equal(status, 503);
      assert.match(headers['retry-after'] ?? '', /^[123]$/);
    }
  }));
