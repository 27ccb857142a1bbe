/**
 * Many writers race for the last capacity of a few providers: no amount is allocated twice, and no claim is lost. `ROUNDS=20` makes as many
 * rounds.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { numberedUuid } from '../support/uuids.ts';
import { type Client, succeed } from './client.ts';
import { checkIntegrity, checkLedger } from './consistency.ts';
import { prepareRace, type RaceWithWriters, runRound } from './race.ts';
import { type Random, randomFrom, seedFor } from './random.ts';
import { type ServerProcess, startServer } from './server_process.ts';
import { withSharedDatabase } from './shared_database.ts';

const rounds = Number(process.env.ROUNDS ?? '2');

for (const { engine, processes } of [
  { engine: 'postgresql', processes: 1 },
  { engine: 'postgresql', processes: 2 },
  { engine: 'embedded', processes: 1 },
] as const) {
  test(`32 writers against ${processes} server(s) on ${engine}`, async (t) => {
    await withSharedDatabase(engine, async (config) => {
      const servers: ServerProcess[] = [];
      try {
        for (let i = 0; i < processes; i++) servers.push(await startServer(config));
        await runRounds(t, servers);
      } finally {
        await Promise.all(servers.map((server) => server.kill()));
      }
    });
  });
}

async function runRounds(t: TestContext, servers: readonly ServerProcess[]): Promise<void> {
  const [first] = servers;
  if (first === undefined) throw new Error('A race needs a server.');
  const random = randomFrom(seedFor(t));
  const clients = servers.map(({ client }) => client);
  const race = await prepareRace(first.client, random, { writers: 32, shared: true });
  for (let round = 1; round <= rounds; round++) {
    const generationsBefore = await generations(first.client, race);
    const bumpsBefore = race.ledger.bumps;
    const watching = new AbortController();
    const watch = watchProviders(race, clients, random.fork(), watching.signal);
    await runRound(race, clients, random, 30);
    watching.abort();
    await watch;

    await checkIntegrity(first.query);
    await checkLedger(first.query, race);
    const grown = (await generations(first.client, race)).map((now, index) => now - (generationsBefore[index] ?? 0));
    assert.ok(
      grown.every((by) => by > 0),
      `every provider's generation grows: ${grown}`,
    );
    // Writes of consumers that all writers share also raise generations, so the exact number is not known.
    const least = race.ledger.bumps - bumpsBefore;
    const sum = grown.reduce((total, by) => total + by, 0);
    assert.ok(sum >= least, `${least} claims moved generations by ${sum} only`);
    for (const { client } of servers) await checkUsages(client, first, race);
  }
  t.diagnostic(JSON.stringify(Object.fromEntries([...race.answers].sort())));
  for (const needed of ['204', '409 no room', '409 generation', '404']) {
    assert.ok((race.answers.get(needed) ?? 0) > 10, `the race must bring about ${needed}`);
  }
}

const generations = async (client: Client, { arena }: RaceWithWriters): Promise<number[]> =>
  Promise.all(
    arena.providers.map(async (uuid) => {
      const provider = await succeed(client, 'GET', `/resource_providers/${uuid}`, 39);
      return (provider as { generation: number }).generation; // the shape of the API
    }),
  );

/** Checks the usages that every server shows against the database. */
async function checkUsages(client: Client, { query }: ServerProcess, { arena }: RaceWithWriters): Promise<void> {
  for (const uuid of arena.providers) {
    const rows = await query(`select c.name, coalesce(sum(a.used), 0)::integer as used from resource_providers p
      join inventories i on i.resource_provider_id = p.id join resource_classes c on c.id = i.resource_class_id
      left join allocations a on a.resource_provider_id = p.id and a.resource_class_id = c.id
      where p.uuid = '${uuid}' group by c.name`);
    const { usages } = (await succeed(client, 'GET', `/resource_providers/${uuid}/usages`, 39)) as { usages: object };
    assert.deepEqual(usages, Object.fromEntries(rows.map(({ name, used }) => [name, used])));
  }
}

/** Checks during the race that generations never go back, on any server, and that no usage exceeds its capacity. */
async function watchProviders(
  { arena }: RaceWithWriters,
  clients: readonly Client[],
  random: Random,
  signal: AbortSignal,
): Promise<void> {
  const newest = new Map<string, number>();
  while (!signal.aborted) {
    const uuid = random.pick(arena.providers);
    const path = `/resource_providers/${uuid}/usages`;
    const { usages, resource_provider_generation: generation } = (await succeed(
      random.pick(clients),
      'GET',
      path,
      39,
    )) as { usages: Record<string, number>; resource_provider_generation: number }; // the shape of the API
    assert.ok(generation >= (newest.get(uuid) ?? 0), `${uuid} went from ${newest.get(uuid)} back to ${generation}`);
    newest.set(uuid, generation);
    for (const [name, used] of Object.entries(usages)) {
      const capacity = arena.capacities.get(`${uuid} ${name}`) ?? 0;
      assert.ok(used <= capacity, `${used} of ${capacity} ${name} are used`);
    }
  }
}

test('without a race, every claim that fits is accepted, up to the last unit', async (t) => {
  await withSharedDatabase('postgresql', async (config) => {
    const server = await startServer(config);
    try {
      const random = randomFrom(seedFor(t));
      const race = await prepareRace(server.client, random, { writers: 1, shared: false });
      const [writer] = race.writers;
      // A single writer knows the usage of every slot exactly, so its own check finds every false refusal.
      for (let step = 0; step < 300; step++) await writer?.step(server.client);
      await checkIntegrity(server.query);
      await checkLedger(server.query, race);
      const [uuid = ''] = race.arena.providers;
      const free = 40 - Number((await usageOf(server.client, uuid)).VCPU ?? 0);
      const claim = (amount: number, consumer: number) =>
        server.client.send('PUT', `/allocations/${numberedUuid(consumer)}`, 28, {
          allocations: { [uuid]: { resources: { VCPU: amount } } },
          project_id: 'p',
          user_id: 'u',
          consumer_generation: null,
        });
      for (let unit = 0; unit < free; unit++) assert.equal((await claim(1, unit)).status, 204);
      assert.equal((await claim(1, free)).status, 409);
    } finally {
      await server.kill();
    }
  });
});

async function usageOf(client: Client, uuid: string): Promise<Record<string, number>> {
  const { usages } = (await succeed(client, 'GET', `/resource_providers/${uuid}/usages`, 39)) as {
    usages: Record<string, number>;
  }; // the shape of the API
  return usages;
}
