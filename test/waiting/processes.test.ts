/** Claims that wait at two processes: clients that leave and come again, processes that end, are killed or hang. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { randomFrom, seedFor } from '../races/random.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { openBadNetwork } from '../soak/bad_network.ts';
import { anyEngine, engines } from '../support/engines.ts';
import { at } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { claimOne, clientOf, type Reply, rowsOf, takeOnlyOne, untilListed, type WaitingClient } from './client.ts';
import { consumerBody, type TestedService, withTestedServices } from './scene.ts';

type Two = {
  readonly servers: readonly [ServerProcess, ServerProcess];
  readonly clients: readonly [WaitingClient, WaitingClient];
  /** A host with one unit of PGPU, which this consumer has. */
  readonly holder: string;
};

/** @param connectionOfSecond the connection of the second server, by that of the first one */
async function withTwo(
  use: (two: Two) => Promise<void>,
  connectionOfSecond = (connection: string): string => connection,
): Promise<void> {
  await withSharedDatabase('postgresql', async (config) => {
    const other = { ...config, connection: connectionOfSecond(config.connection ?? '') };
    const servers = await Promise.all([startServer(config), startServer(other)]);
    const [first, second] = servers.map(({ url }) => clientOf(url));
    assert.ok(first && second);
    try {
      await use({ servers, clients: [first, second], holder: await takeOnlyOne(first) });
    } finally {
      first.close();
      second.close();
      await Promise.all(servers.map((server) => server.kill()));
    }
  });
}

const kinds = [
  ['of a line', 'gpu'],
  ['without a line', undefined],
] as const;

for (const [named, line] of kinds) {
  test(`a claim ${named} whose client has left is not placed, and has its place back`, () =>
    withTwo(async ({ clients, holder }) => {
      const [here, there] = clients;
      const [first, second] = [randomUUID(), randomUUID()];
      const gone = new AbortController();
      const left = claimOne(here, first, line, gone.signal).catch(() => 'cut');
      await untilListed(clients[0], [first]);
      const answers = [claimOne(line === undefined ? here : there, second, line)];
      await untilListed(clients[0], [first, second]);
      const [before] = await rowsOf(clients[0]);
      gone.abort();
      assert.equal(await left, 'cut');
      await untilListed(clients[0], [second]);
      answers.push(claimOne(line === undefined ? here : there, first, line));
      await untilListed(clients[0], [first, second]);
      const [after] = await rowsOf(clients[0]);
      assert.equal(at(after, 'number'), at(before, 'number'));
      assert.equal(at(after, 'since'), at(before, 'since'));
      await here.send('DELETE', `/allocations/${holder}`);
      assert.equal((await answers[1])?.status, 200);
      await untilListed(clients[0], [second]);
      await here.send('DELETE', `/allocations/${first}`);
      assert.equal((await answers[0])?.status, 200);
    }));

  test(`a later request ${named} takes the place of an earlier one`, () =>
    withTwo(async ({ clients, holder }) => {
      const [here, there] = clients;
      const uuid = randomUUID();
      let last = claimOne(here, uuid, line);
      await untilListed(clients[0], [uuid]);
      for (const client of [there, there, here]) {
        const former = last;
        last = claimOne(client, uuid, line);
        const { status, body } = await former;
        assert.equal(status, 409);
        assert.equal(at(body, 'errors', 0, 'code'), 'placement.concurrent_update');
        // So that the time that a statement takes does not tell which request came last.
        await sleep(500);
      }
      await untilListed(clients[0], [uuid]);
      await there.send('DELETE', `/allocations/${holder}`);
      assert.equal((await last).status, 200);
    }));

  test(`of requests ${named} for the same consumers at both processes, one waits on`, (t) =>
    withTwo(async ({ clients, holder }) => {
      const random = randomFrom(seedFor(t));
      const one = randomUUID();
      const answered: string[] = [];
      const answers = await Promise.all(
        Array.from({ length: 40 }, async () => {
          const choice = random.fork();
          await sleep(choice.below(1_500));
          const pending = claimOne(clients[choice.below(2) === 0 ? 0 : 1], one, line);
          const answer = pending.then(({ status, body }) =>
            answered.push(status === 200 ? 'placed' : String(at(body, 'errors', 0, 'detail'))),
          );
          return { answer };
        }),
      );
      await until('39 are answered', () => answered.length === 39);
      await sleep(300);
      const later = 'A later request for the same consumers waits in the place of this one.';
      assert.deepEqual(new Set(answered), new Set([later]));
      await clients[0].send('DELETE', `/allocations/${holder}`);
      await Promise.all(answers.map(({ answer }) => answer));
      assert.equal(answered[39], 'placed');
    }));
}

for (const [named, line] of kinds) {
  test(`a request ${named} is not placed after a later one for the same consumer was placed at another process`, () =>
    withTwo(async ({ clients: [here, there], holder }) => {
      let held = holder;
      for (let round = 0; round < 12; round += 1) {
        const uuid = randomUUID();
        const earlier = claimOne(here, uuid, line);
        await untilListed(here, [uuid]);
        const later = claimOne(there, uuid, line);
        // Before and after the first process can have heard of the later request.
        await sleep(20 * round);
        await there.send('DELETE', `/allocations/${held}`);
        const placed = (reply: Promise<Reply>) => reply.then(({ status }) => assert.equal(status, 200));
        const first = await Promise.any([placed(earlier).then(() => 'earlier'), placed(later).then(() => 'later')]);
        await there.send('DELETE', `/allocations/${uuid}`);
        if (first === 'later') assert.equal((await earlier).status, 409);
        await Promise.all([earlier, later]);
        await there.send('DELETE', `/allocations/${uuid}`);
        held = randomUUID();
        assert.equal((await claimOne(here, held)).status, 200);
      }
    }));

  test(`DELETE /waiting right after a later request ${named} has come to another process ends both`, () =>
    withTwo(async ({ servers: [server], clients: [here, there] }) => {
      for (let round = 0; round < 5; round += 1) {
        const uuid = randomUUID();
        const stored = `select process from waiting where '${uuid}' = any(consumers) and left_at is null`;
        const processOf = async (): Promise<unknown> => (await server.query(stored))[0]?.process;
        const earlier = claimOne(here, uuid, line);
        await untilListed(here, [uuid]);
        const former = await processOf();
        const later = claimOne(there, uuid, line);
        await until('the later request is stored', async () => (await processOf()) !== former);
        assert.equal((await there.send('DELETE', `/waiting/${uuid}`)).status, 204);
        assert.deepEqual([(await earlier).status, (await later).status], [409, 409]);
      }
      assert.deepEqual(await rowsOf(here), []);
    }));

  test(`a request ${named} that comes right after DELETE /waiting waits`, () =>
    withTwo(async ({ clients }) => {
      const [here, there] = clients;
      for (let round = 0; round < 10; round += 1) {
        const uuid = randomUUID();
        const earlier = claimOne(here, uuid, line);
        await untilListed(here, [uuid]);
        assert.equal((await there.send('DELETE', `/waiting/${uuid}`)).status, 204);
        const again = claimOne(clients[round % 2 === 0 ? 0 : 1], uuid, line);
        assert.equal((await earlier).status, 409);
        assert.equal(await Promise.race([again, sleep(300).then(() => 'waits')]), 'waits');
        await untilListed(here, [uuid]);
        assert.equal((await there.send('DELETE', `/waiting/${uuid}`)).status, 204);
        assert.equal((await again).status, 409);
      }
    }));
}

for (const [named, line] of kinds) {
  test(`a request ${named} that could not be stored for a while does not take the place of a later one`, async () => {
    const network = await openBadNetwork(0);
    const throughNetwork = (connection: string): string => {
      const url = new URL(connection);
      network.lead(Number(url.port));
      url.port = String(network.port);
      return url.href;
    };
    try {
      await withTwo(async ({ clients: [here, there] }) => {
        const uuid = randomUUID();
        const gone = new AbortController();
        network.block(true);
        const earlier = claimOne(there, uuid, line, gone.signal).catch(() => 'cut');
        await sleep(1_000);
        gone.abort();
        assert.equal(await earlier, 'cut');
        const later = claimOne(here, uuid, line);
        await untilListed(here, [uuid]);
        network.block(false);
        assert.equal(await Promise.race([later, sleep(2_000).then(() => 'waits')]), 'waits');
        await untilListed(here, [uuid]);
        assert.equal((await here.send('DELETE', `/waiting/${uuid}`)).status, 204);
        assert.equal((await later).status, 409);
      }, throughNetwork);
    } finally {
      network.close();
    }
  });
}

test('a request without a line is answered at once where its consumer is written before the request is stored', () =>
  withTwo(async ({ clients: [here, there], holder }) => {
    let held = holder;
    for (const gapMs of [0, 30, 60, 90, 120, 150, 180]) {
      const uuid = randomUUID();
      const earlier = claimOne(here, uuid);
      await untilListed(here, [uuid]);
      const later = claimOne(there, uuid);
      await sleep(gapMs);
      await here.send('DELETE', `/allocations/${held}`);
      const both = Promise.all([earlier, later]);
      const answers = await Promise.race([both, sleep(20_000, undefined, { ref: false })]);
      assert.ok(answers, `after ${gapMs} ms one of them waits on`);
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409]);
      held = uuid;
    }
  }));

test('claims that share a consumer with an earlier claim do not take its room', () =>
  withTwo(async ({ clients: [here, there], holder }) => {
    const [one, other] = [randomUUID(), randomUUID()];
    const first = claimOne(here, one);
    await untilListed(here, [one]);
    const gangs = Array.from({ length: 30 }, (_, number) => {
      const consumer = consumerBody({ project: `project ${number}` });
      return here.send('POST', '/allocations', { body: { [one]: consumer, [other]: consumer }, wait: 2 });
    });
    await there.send('DELETE', `/allocations/${holder}`);
    // Each of them once kept it, and all other claims that wait, for half a second.
    const placed = await Promise.race([first, sleep(8_000).then(() => undefined)]);
    assert.equal(placed?.status, 200);
    for (const { status } of await Promise.all(gangs)) assert.equal(status, 409);
  }));

test('a line goes on when the process of its first claim is killed, and the claim keeps its place in the line if it comes again', () =>
  withTwo(async ({ servers, clients, holder }) => {
    const [here, there] = clients;
    const [first, second] = [randomUUID(), randomUUID()];
    const lost = claimOne(there, first, 'gpu').catch(() => 'cut');
    await untilListed(clients[0], [first]);
    const next = claimOne(here, second, 'gpu');
    await untilListed(clients[0], [first, second]);
    await servers[1].kill();
    assert.equal(await lost, 'cut');
    await sleep(1_000);
    const again = claimOne(here, first, 'gpu');
    await until('the claim came again', async () => at((await rowsOf(clients[0]))[0], 'consumers', 0) === first);
    await here.send('DELETE', `/allocations/${holder}`);
    assert.equal((await again).status, 200);
    await here.send('DELETE', `/allocations/${first}`);
    assert.equal((await next).status, 200);
  }));

test('a line passes over a process that hangs, and its claim is not written out of order afterwards', () =>
  withTwo(async ({ servers, clients, holder }) => {
    const [here, there] = clients;
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
    const hanging = claimOne(there, first, 'gpu');
    await untilListed(clients[0], [first]);
    const answers = [claimOne(here, second, 'gpu'), claimOne(here, third, 'gpu')];
    await until('three wait', async () => (await rowsOf(clients[0])).length === 3);
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

for (const [[named, line], engine] of kinds.flatMap((kind) => engines.map((engine) => [kind, engine] as const))) {
  test(`a claim ${named} whose row another program deletes is stored again, and placed, on ${engine}`, () =>
    withTestedServices(engine, { units: 1 }, async ({ service, take, claim, untilListed: until, release }) => {
      const holder = await take(1);
      const request = { uuid: randomUUID(), ...(line === undefined ? {} : { line }) };
      const answer = claim(request);
      await until(1);
      await service.database.kysely.deleteFrom('waiting').execute(); // it is listed by its row
      await until(1);
      await release(holder);
      assert.equal((await answer).status, 200);
      await until(0);
    }));
}

/** Lets time pass for two claims that have left: for both at once, since a row that left more than a minute ago may be forgotten. */
async function leftSecondsAgo({ service }: TestedService, seconds: number): Promise<void> {
  const { kysely } = service.database;
  const left = kysely.selectFrom('waiting').select('claim').where('left_at', 'is not', null);
  await until('both claims have left', async () => (await left.execute()).length === 2);
  const leftAt = sql<Date>`clock_timestamp() - make_interval(secs => ${seconds})`;
  const { numUpdatedRows } = await kysely
    .updateTable('waiting')
    .set({ left_at: leftAt })
    .where('left_at', 'is not', null)
    .executeTakeFirst();
  assert.equal(numUpdatedRows, 2n);
}

/** Sends claims for line `gpu`, one behind the other. @returns their answers, which come later */
async function inLine({ claim, untilListed }: TestedService, uuids: readonly string[]) {
  const answers: ReturnType<TestedService['claim']>[] = [];
  for (const [before, uuid] of uuids.entries()) {
    answers.push(claim({ uuid, line: 'gpu' }));
    await untilListed(before + 1);
  }
  return answers;
}

test('a claim that comes again after more than a minute goes to the end of its line', () =>
  withTestedServices(anyEngine, { units: 1, services: 2 }, async (ending, other) => {
    assert.ok(other);
    await ending.take(1);
    const uuids = [randomUUID(), randomUUID()] as const;
    const answers = await inLine(ending, uuids);
    ending.service.endWaits();
    for (const { json } of await Promise.all(answers)) {
      assert.match(
        String(at(json, 'errors', 0, 'detail')),
        /within 60 s: then the claim keeps its place in the line\.$/,
      );
    }
    await leftSecondsAgo(other, 61);
    void other.claim({ uuid: uuids[1], line: 'gpu' });
    await other.untilListed(1);
    void other.claim({ uuid: uuids[0], line: 'gpu' });
    await other.untilListed(2);
    assert.deepEqual(
      (await other.listed()).map((each) => at(each, 'consumers', 0)),
      uuids.toReversed(),
    );
  }));

test('a process that ends answers its claims, which keep their places at another one', () =>
  withTestedServices(anyEngine, { units: 1, services: 2 }, async (ending, other) => {
    assert.ok(other);
    const holder = await ending.take(1);
    const uuids = [randomUUID(), randomUUID()] as const;
    const answers = await inLine(ending, uuids);
    ending.service.endWaits();
    for (const { status, headers } of await Promise.all(answers)) {
      assert.equal(status, 503);
      assert.match(headers.get('retry-after') ?? '', /^[123]$/);
    }
    await leftSecondsAgo(other, 50); // the service took so long to start again
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
