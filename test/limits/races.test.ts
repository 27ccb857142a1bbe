/** Limits under claims that race, through two processes: never exceeded, always reached, and counted from whatever moment they are set. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { type Connection, connectTo } from '../histories/connection.ts';
import type { Reply } from '../histories/history.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { type Answer, at } from '../support/requests.ts';

const version = 2007;
const host = randomUUID();

type Two = {
  readonly connections: readonly Connection[];
  readonly servers: readonly ServerProcess[];
  readonly send: Connection['send'];
};

async function withTwoServers(use: (two: Two) => Promise<void>): Promise<void> {
  await withSharedDatabase('postgresql', async (config) => {
    const servers = await Promise.all([1, 2].map(() => startServer(config)));
    const connections = servers.map(({ url }) => connectTo(url));
    const [first] = connections;
    assert.ok(first);
    try {
      const { send } = first;
      await send({
        method: 'POST',
        path: '/resource_providers',
        microversion: version,
        body: { name: 'host', uuid: host },
      });
      const stocked = { resource_provider_generation: 0, inventories: { PGPU: { total: 1_000_000 } } };
      const put = {
        method: 'PUT',
        path: `/resource_providers/${host}/inventories`,
        microversion: version,
        body: stocked,
      } as const;
      assert.equal((await send(put))?.status, 200);
      await use({ connections, servers, send });
    } finally {
      for (const connection of connections) connection.close();
      await Promise.all(servers.map((server) => server.kill()));
    }
  });
}

const claim = (
  { send }: Connection,
  project: string,
  amount = 1,
  uuid: string = randomUUID(),
): Promise<Reply | undefined> =>
  send({
    method: 'PUT',
    path: `/allocations/${uuid}`,
    microversion: version,
    body: {
      allocations: { [host]: { resources: { PGPU: amount } } },
      project_id: project,
      user_id: 'ada',
      consumer_type: 'JOB',
      consumer_generation: null,
    },
  });

const setLimit = (send: Connection['send'], project: string, limit: number): Promise<Reply | undefined> =>
  send({
    method: 'PUT',
    path: `/limits/${project}`,
    microversion: version,
    body: { resources: { PGPU: limit }, generation: null },
  });

const usedBy = async (send: Connection['send'], project: string): Promise<unknown> => {
  const reply = await send({ method: 'GET', path: `/limits/${project}`, microversion: version });
  return at(reply?.body, 'resources', 'PGPU', 'used');
};

const summed = async (send: Connection['send'], project: string): Promise<unknown> => {
  const reply = await send({ method: 'GET', path: `/usages?project_id=${project}`, microversion: 1037 });
  return at(reply?.body, 'usages', 'PGPU');
};

const statusOf = (reply: Reply | undefined): Answer['status'] | undefined => reply?.status;

test('of 60 claims for 20 through two processes exactly 20 are written, and none is a 409', async () => {
  await withTwoServers(async ({ connections, send }) => {
    assert.equal((await setLimit(send, 'ci', 20))?.status, 200);
    const replies = await Promise.all(
      Array.from({ length: 60 }, (_, number) => {
        const connection = connections[number % 2];
        assert.ok(connection);
        return claim(connection, 'ci');
      }),
    );
    const statuses = replies.map(statusOf).toSorted();
    assert.deepEqual(statuses, [...Array(20).fill(204), ...Array(40).fill(403)]);
    assert.deepEqual([await usedBy(send, 'ci'), await summed(send, 'ci')], [20, 20]);
  });
});

test('the first limit counts what 24 clients claim and release meanwhile, ten times', async () => {
  await withTwoServers(async ({ connections, send }) => {
    for (let round = 0; round < 10; round += 1) {
      const project = `round-${round}`;
      let isOver = false;
      let refused = 0;
      const work = async (number: number): Promise<void> => {
        const connection = connections[number % 2];
        assert.ok(connection);
        for (let count = 0; !isOver; count += 1) {
          const uuid = randomUUID();
          const { status } = (await claim(connection, project, 1 + (count % 3), uuid)) ?? {};
          assert.ok(status === 204 || status === 403, `${status}`);
          if (status === 403) refused += 1;
          else if (count % 3 !== 0) {
            await connection.send({ method: 'DELETE', path: `/allocations/${uuid}`, microversion: version });
          }
        }
      };
      const working = Promise.all(Array.from({ length: 24 }, (_, number) => work(number)));
      while (((await summed(send, project)) ?? 0) === 0);
      // It is the first one of the service, and low: what is there already stays.
      const set = await setLimit(send, project, 5);
      assert.equal(set?.status, 200, JSON.stringify(set?.body));
      const since = Date.now();
      while (refused === 0 && Date.now() - since < 10_000) await new Promise((done) => setTimeout(done, 5));
      isOver = true;
      await working;
      assert.ok(refused > 0);
      assert.equal(await usedBy(send, project), await summed(send, project));
      await send({ method: 'DELETE', path: `/limits/${project}`, microversion: version });
    }
  });
});
