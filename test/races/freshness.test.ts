/**
 * An answer includes everything that was committed before its request came: one process writes, and the test reads from
 * another process at once.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newClaim } from '../support/requests.ts';
import { type Client, succeed } from './client.ts';
import { type Random, randomFrom, randomUuid, seedFor } from './random.ts';
import { startServer } from './server_process.ts';
import { withSharedDatabase } from './shared_database.ts';

type Pair = { readonly writer: Client; readonly reader: Client };

const chains = 8;
const rounds = 36;

test('a reader in another process sees every write that was answered', async (t) => {
  const random = randomFrom(seedFor(t));
  await withSharedDatabase('postgresql', async (config) => {
    const servers = await Promise.all([startServer(config), startServer(config)]);
    try {
      const [first, second] = servers.map(({ client }) => client) as [Client, Client]; // as many as servers
      const counts = await Promise.all(
        Array.from({ length: chains }, async (_, chain) => {
          const choice = random.fork();
          let reads = 0;
          for (let round = 0; round < rounds; round++) {
            const pair =
              (chain + round) % 2 === 0 ? { writer: first, reader: second } : { writer: second, reader: first };
            reads += await oneLife(pair, choice);
          }
          return reads;
        }),
      );
      t.diagnostic(`${counts.reduce((sum, count) => sum + count, 0)} reads, each right behind a write`);
    } finally {
      await Promise.all(servers.map((server) => server.kill()));
    }
  });
});

/** The life of a provider. The reader reads it after each step. */
async function oneLife({ writer, reader }: Pair, random: Random): Promise<number> {
  const uuid = randomUuid(random);
  const consumer = randomUuid(random);
  const aggregate = randomUuid(random);
  const one = `/resource_providers/${uuid}`;
  let reads = 0;
  const see = async (path: string, part: (body: never) => unknown, expected: unknown): Promise<void> => {
    reads += 1;
    assert.deepEqual(part((await succeed(reader, 'GET', path, 39)) as never), expected, path); // the shape of the API
  };
  const write = (method: string, path: string, body?: unknown) => succeed(writer, method, path, 39, body);

  await write('POST', '/resource_providers', { name: uuid, uuid });
  await see(one, ({ name }: { name: string }) => name, uuid);
  await write('PUT', one, { name: `${uuid} renamed` });
  await see(
    `/resource_providers?name=${uuid}%20renamed`,
    (body: { resource_providers: unknown[] }) => body.resource_providers.length,
    1,
  );
  const total = 1 + random.below(1000);
  await write('PUT', `${one}/inventories`, {
    resource_provider_generation: 0,
    inventories: { VCPU: { total }, MEMORY_MB: { total } },
  });
  await see(
    `${one}/inventories`,
    (body: { inventories: { VCPU: { total: number } } }) => body.inventories.VCPU.total,
    total,
  );
  await write('PUT', `${one}/traits`, { resource_provider_generation: 1, traits: ['HW_CPU_X86_AVX2'] });
  await see(`${one}/traits`, ({ traits }: { traits: string[] }) => traits, ['HW_CPU_X86_AVX2']);
  await write('PUT', `${one}/aggregates`, { resource_provider_generation: 2, aggregates: [aggregate] });
  await see(
    `/resource_providers?member_of=${aggregate}&required=HW_CPU_X86_AVX2&resources=VCPU:${total}`,
    (body: { resource_providers: { uuid: string }[] }) => body.resource_providers.map((each) => each.uuid),
    [uuid],
  );
  const claim = newClaim({ [uuid]: { VCPU: total } });
  await write('PUT', `/allocations/${consumer}`, claim);
  await see(`${one}/usages`, ({ usages }: { usages: object }) => usages, { VCPU: total, MEMORY_MB: 0 });
  await see(
    `/resource_providers?resources=VCPU:1&in_tree=${uuid}`,
    (body: { resource_providers: unknown[] }) => body.resource_providers.length,
    0,
  );
  await see(`/allocations/${consumer}`, (body: { allocations: object }) => Object.keys(body.allocations), [uuid]);
  // A claim in the other process. Only the latest usage decides whether it is accepted.
  const other = randomUuid(random);
  assert.equal((await reader.send('PUT', `/allocations/${other}`, 39, claim)).status, 409);
  await write('DELETE', `/allocations/${consumer}`);
  assert.equal((await reader.send('PUT', `/allocations/${other}`, 39, claim)).status, 204);
  await succeed(reader, 'DELETE', `/allocations/${other}`, 39);
  reads += 2;
  await write('DELETE', `${one}/inventories/VCPU`);
  await see(`${one}/inventories`, (body: { inventories: object }) => Object.keys(body.inventories), ['MEMORY_MB']);
  await write('DELETE', one);
  reads += 1;
  assert.equal((await reader.send('GET', one, 39)).status, 404);
  return reads;
}
