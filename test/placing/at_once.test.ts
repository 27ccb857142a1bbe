/** Many clients place consumers at once, by two processes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, detailOf, type Reply, succeed } from '../races/client.ts';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { execute } from '../support/postgresql.ts';
import { at } from '../support/requests.ts';
import { placed, providersOf } from './placed.ts';

const version = '2.4';

async function makeHosts(client: Client, count: number, vcpus: number, parent?: string): Promise<readonly string[]> {
  const hosts = Array.from({ length: count }, () => randomUUID());
  for (const uuid of hosts) {
    await succeed(client, 'POST', '/resource_providers', version, { name: uuid, uuid, parent_provider_uuid: parent });
    await succeed(client, 'PUT', `/resource_providers/${uuid}/inventories`, version, {
      resource_provider_generation: 0,
      inventories: { VCPU: { total: vcpus } },
    });
  }
  return hosts;
}

/** @param settings of the database, for all its connections, such as `{ work_mem: '8MB' }` */
async function withServers(
  count: number,
  use: (servers: readonly ServerProcess[]) => Promise<void>,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  await withSharedDatabase('postgresql', async (config) => {
    for (const [name, value] of Object.entries(settings)) {
      const database = new URL(config.connection ?? '').pathname.slice(1);
      await execute(config.connection ?? '', `alter database ${database} set ${name} = '${value}'`);
    }
    const servers: ServerProcess[] = [];
    try {
      for (let number = 0; number < count; number++) servers.push(await startServer(config));
      await use(servers);
    } finally {
      for (const server of servers) await server.kill();
    }
  });
}

/** Runs so many jobs by so many clients that each do one after the other. */
async function byClients(count: number, jobs: number, work: (job: number) => Promise<void>): Promise<void> {
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < jobs) await work(next++);
  };
  await Promise.all(Array.from({ length: count }, client));
}

const codeOf = ({ body }: Reply): unknown => at(body, 'errors', 0, 'code');

for (const order of ['', '&order=free:VCPU', '&order=-free:VCPU']) {
  test(`of 400 queries for 200 free units just 200 are placed${order && ` by ${order.slice(1)}`}`, async () => {
    await withServers(2, async ([first, second]) => {
      assert.ok(first && second);
      await makeHosts(first.client, 25, 8);
      const replies: Reply[] = [];
      await byClients(32, 400, async (job) => {
        const { client } = job % 2 === 0 ? first : second;
        replies.push(
          await client.send('PUT', `/allocations/${randomUUID()}`, version, placed(`resources=VCPU:1${order}`)),
        );
      });
      const refused = replies.filter(({ status }) => status !== 200);
      for (const reply of refused)
        assert.deepEqual([reply.status, codeOf(reply)], [409, 'placement.no_candidates'], detailOf(reply));
      assert.equal(replies.length - refused.length, 200);
      const over = await first.query(
        `select a.resource_provider_id, sum(a.used) from allocations a group by 1 having sum(a.used) > 8`,
      );
      assert.deepEqual(over, []);
    });
  });
}

test('gangs are whole or absent, also where a process is killed, and no host is above its capacity', async () => {
  await withServers(2, async ([first, second]) => {
    assert.ok(first && second);
    await makeHosts(first.client, 20, 8);
    const gangs: { readonly uuids: readonly string[]; status: number | undefined }[] = [];
    let answered = 0;
    let isKilled = false;
    const placing = byClients(16, 80, async (job) => {
      const uuids = Array.from({ length: 4 }, () => randomUUID());
      const gang = { uuids, status: undefined as number | undefined };
      gangs.push(gang);
      const { client } = job % 2 === 0 || isKilled ? first : second;
      const body = Object.fromEntries(uuids.map((uuid) => [uuid, placed('resources=VCPU:1')]));
      // The connection to the killed process breaks: what became of the request is not known.
      const reply = await client.send('POST', '/allocations', version, body).catch(() => undefined);
      gang.status = reply?.status;
      answered += 1;
    });
    while (answered < 12) await sleep(1);
    isKilled = true;
    await second.kill();
    await placing;
    const rows = await first.query('select consumer_id, sum(used)::integer as used from allocations group by 1');
    const held = new Map(rows.map(({ consumer_id, used }) => [String(consumer_id), Number(used)]));
    for (const { uuids, status } of gangs) {
      const members = uuids.filter((uuid) => held.get(uuid) === 1).length;
      assert.ok(members === 0 || members === 4, `${members} of a gang are placed`);
      if (status !== undefined) assert.equal(members, status === 200 ? 4 : 0, `a gang was answered ${status}`);
    }
    const whole = gangs.filter(({ uuids: [uuid = ''] }) => held.has(uuid)).length;
    assert.equal(whole, 40, 'the hosts are full');
    assert.deepEqual(
      await first.query(`select 1 from allocations group by resource_provider_id having sum(used) > 8`),
      [],
    );
  });
});

for (const isolation of ['read committed', 'repeatable read', 'serializable']) {
  test(`consumers that name each other never share a tree, by two processes, where ${isolation} is the default`, () =>
    withServers(2, neverShareATree, { default_transaction_isolation: isolation }));
}

async function neverShareATree([first, second]: readonly ServerProcess[]): Promise<void> {
  assert.ok(first && second);
  const treeOf = new Map<string, string>();
  for (let number = 0; number < 4; number++) {
    const root = randomUUID();
    await succeed(first.client, 'POST', '/resource_providers', version, { name: root, uuid: root });
    // Two that take from one tree seldom take from one provider, whose row they would lock.
    for (const uuid of await makeHosts(first.client, 5, 1000, root)) treeOf.set(uuid, root);
  }
  for (let round = 0; round < 25; round++) {
    const group = Array.from({ length: 4 }, () => randomUUID());
    const replies: readonly Reply[] = await Promise.all(
      group.map((uuid, index) => {
        const others = group.filter((other) => other !== uuid).join(',');
        const query = `resources=VCPU:1&apart_from=${others}`;
        const { client }: ServerProcess = index % 2 === 0 ? first : second;
        return client.send('PUT', `/allocations/${uuid}`, version, placed(query));
      }),
    );
    for (const reply of replies) assert.equal(reply.status, 200, detailOf(reply));
    const trees = replies.flatMap(({ body }) => providersOf(body).map((uuid) => treeOf.get(uuid)));
    assert.equal(new Set(trees).size, 4, `two of round ${round} share a tree`);
  }
}
