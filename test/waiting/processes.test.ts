/** Claims that wait at two processes: clients that leave and come again, processes that end, are killed or hang. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { withPlace } from '../races/place.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { anyEngine } from '../support/engines.ts';
import { at } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { clientOf, type Reply, type WaitingClient } from './client.ts';
import { consumerBody, withPlaces } from './scene.ts';

type Two = {
  readonly servers: readonly [ServerProcess, ServerProcess];
  readonly clients: readonly [WaitingClient, WaitingClient];
  /** A host with one unit of PGPU, which this consumer has. */
  readonly holder: string;
};

const claim = (client: WaitingClient, uuid: string, line?: string, signal?: AbortSignal): Promise<Reply> =>
  client.send('PUT', `/allocations/${uuid}`, {
    body: { ...consumerBody({}), ...(line === undefined ? {} : { line }) },
    wait: 60,
    ...(signal === undefined ? {} : { signal }),
  });

const rowsOf = async ([client]: Two['clients']): Promise<readonly unknown[]> =>
  at((await client.send('GET', '/waiting')).body, 'waiting') as readonly unknown[]; // the list of GET /waiting

const untilListed = (clients: Two['clients'], consumers: readonly string[]): Promise<void> =>
  until(`${consumers} wait`, async () => {
    const rows = await rowsOf(clients);
    return JSON.stringify(rows.map((row) => at(row, 'consumers', 0))) === JSON.stringify(consumers);
  });

async function withTwo(use: (two: Two) => Promise<void>): Promise<void> {
  await withPlace('postgresql', async (config) => {
    const servers = await Promise.all([startServer(config), startServer(config)]);
    const [first, second] = servers.map(({ url }) => clientOf(url));
    assert.ok(first && second);
    const holder = randomUUID();
    try {
      const host = randomUUID();
      const body = { resource_provider_generation: 0, inventories: { PGPU: { total: 1 } } };
      await first.send('POST', '/resource_providers', { body: { name: host, uuid: host } });
      assert.equal((await first.send('PUT', `/resource_providers/${host}/inventories`, { body })).status, 200);
      assert.equal((await claim(first, holder)).status, 200);
      await use({ servers, clients: [first, second], holder });
    } finally {
      first.close();
      second.close();
      await Promise.all(servers.map((server) => server.kill()));
    }
  });
}

for (const line of ['gpu', undefined]) {
  test(`a claim ${line === undefined ? 'without a line' : 'of a line'} whose client has left is not placed, and has its place back`, () =>
    withTwo(async ({ clients, holder }) => {
      const [here, there] = clients;
      const [first, second] = [randomUUID(), randomUUID()];
      const gone = new AbortController();
      const left = claim(here, first, line, gone.signal).catch(() => 'cut');
      await untilListed(clients, [first]);
      const answers = [claim(line === undefined ? here : there, second, line)];
      await untilListed(clients, [first, second]);
      const [before] = await rowsOf(clients);
      gone.abort();
      assert.equal(await left, 'cut');
      await untilListed(clients, [second]);
      answers.push(claim(line === undefined ? here : there, first, line));
      await untilListed(clients, [first, second]);
      const [after] = await rowsOf(clients);
      assert.equal(at(after, 'number'), at(before, 'number'));
      assert.equal(at(after, 'since'), at(before, 'since'));
      await here.send('DELETE', `/allocations/${holder}`);
      assert.equal((await answers[1])?.status, 200);
      await untilListed(clients, [second]);
      await here.send('DELETE', `/allocations/${first}`);
      assert.equal((await answers[0])?.status, 200);
    }));

  test(`a later request ${line === undefined ? 'without a line' : 'of a line'} takes the place of an earlier one`, () =>
    withTwo(async ({ clients, holder }) => {
      const [here, there] = clients;
      const uuid = randomUUID();
      let last = claim(here, uuid, line);
      await untilListed(clients, [uuid]);
      for (const client of [there, there, here]) {
        const former = last;
        last = claim(client, uuid, line);
        const { status, body } = await former;
        assert.equal(status, 409);
        assert.equal(at(body, 'errors', 0, 'code'), 'placement.concurrent_update');
        // Its row is stored then. Of requests that come to two processes while neither has stored it, either one takes the place.
        await sleep(500);
      }
      await untilListed(clients, [uuid]);
      await there.send('DELETE', `/allocations/${holder}`);
      assert.equal((await last).status, 200);
    }));
}

test('a line goes on when the process of its first claim is killed, and the claim keeps its place if it comes again', () =>
  withTwo(async ({ servers, clients, holder }) => {
    const [here, there] = clients;
    const [first, second] = [randomUUID(), randomUUID()];
    const lost = claim(there, first, 'gpu').catch(() => 'cut');
    await untilListed(clients, [first]);
    const next = claim(here, second, 'gpu');
    await untilListed(clients, [first, second]);
    await servers[1].kill();
    assert.equal(await lost, 'cut');
    await sleep(1_000);
    const again = claim(here, first, 'gpu');
    await until('the claim came again', async () => at((await rowsOf(clients))[0], 'consumers', 0) === first);
    await here.send('DELETE', `/allocations/${holder}`);
    assert.equal((await again).status, 200);
    await here.send('DELETE', `/allocations/${first}`);
    assert.equal((await next).status, 200);
  }));

test('a line passes over a process that hangs, and its claim is not written out of order afterwards', () =>
  withTwo(async ({ servers, clients, holder }) => {
    const [here, there] = clients;
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
    const hanging = claim(there, first, 'gpu');
    await untilListed(clients, [first]);
    const answers = [claim(here, second, 'gpu'), claim(here, third, 'gpu')];
    await until('three wait', async () => (await rowsOf(clients)).length === 3);
    process.kill(servers[1].pid, 'SIGSTOP');
    try {
      await here.send('DELETE', `/allocations/${holder}`);
      assert.equal((await answers[0])?.status, 200);
    } finally {
      process.kill(servers[1].pid, 'SIGCONT');
    }
    await here.send('DELETE', `/allocations/${second}`);
    const placed = await Promise.race([
      hanging.then(({ status }) => [first, status] as const),
      Promise.resolve(answers[1]).then((reply) => [third, reply?.status] as const),
    ]);
    assert.equal(placed[1], 200);
    await here.send('DELETE', `/allocations/${placed[0]}`);
    assert.deepEqual([(await hanging).status, (await answers[1])?.status], [200, 200]);
  }));

test('a process that ends answers its claims, which keep their places at another one', () =>
  withPlaces(anyEngine, { units: 1, services: 2 }, async (ending, other) => {
    assert.ok(other);
    const holder = await ending.take(1);
    const uuids = [randomUUID(), randomUUID()] as const;
    const answers = [ending.claim({ uuid: uuids[0], line: 'gpu' })];
    await ending.untilListed(1);
    answers.push(ending.claim({ uuid: uuids[1], line: 'gpu' }));
    await ending.untilListed(2);
    ending.service.endWaits();
    for (const { status, headers } of await Promise.all(answers)) {
      assert.equal(status, 503);
      assert.match(headers.get('retry-after') ?? '', /^[123]$/);
    }
    const second = other.claim({ uuid: uuids[1], line: 'gpu' });
    await other.untilListed(1);
    const first = other.claim({ uuid: uuids[0], line: 'gpu' });
    await other.untilListed(2);
    assert.deepEqual(
      (await other.listed()).map((each) => at(each, 'consumers', 0)),
      uuids,
    );
    await other.release(holder);
    assert.equal((await first).status, 200);
    await other.release(uuids[0]);
    assert.equal((await second).status, 200);
  }));
