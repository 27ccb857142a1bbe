/**
 * Each mistake that is planted into the service shows in what clients see of it. A run plants some of them, chosen by its seed;
 * `MISTAKES=all` plants all, `MISTAKES='a term'` those with this text in their names.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type Random, randomFrom, seedFor } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { clientOf } from '../waiting/client.ts';
import { liveSchedule, noteWrites } from '../waiting/schedules.ts';
import { makeArena, type Scene } from './arena.ts';
import { check, type Finding } from './check.ts';
import { connectTo } from './connection.ts';
import { withCrashingService } from './crashing_service.ts';
import { dense, type Life, live, paced, small, type Work } from './live.ts';
import { type Mistake, withMistake } from './mistake.ts';
import { mistakes } from './mistakes.ts';
import { findWrongRoot } from './stored_roots.ts';

/** On an idle machine most are found within 10 s, and rare ones within minutes; beside other tests it takes several times as long. */
const patienceMs = 420_000;
const plantedInOneRun = 2;
/** Between the requests that prepare a history: longer than a mistake about the time of reads lasts. */
const pauseMs = 60;
/** What happens at the same time, until a mistake is found. */
const looks: Readonly<Record<Scene, readonly Work[]>> = {
  hosts: [dense, paced, paced],
  trees: [small, small, { ...small, pauseMs: 20 }],
  classes: [small, small, { ...small, pauseMs: 20 }],
  again: [dense, { ...small, pauseMs: 60 }],
  limits: [dense, dense, { ...small, pauseMs: 20 }],
};

test('each mistake can be planted into the present source', () => {
  for (const mistake of mistakes) withMistake(mistake);
});

test('each planted mistake is found', { concurrency: 2 }, async (t) => {
  assert.ok(mistakes.length >= 15);
  const random = randomFrom(seedFor(t));
  const usual = mistakes.filter(({ isRare }) => isRare !== true);
  const first = random.below(usual.length);
  const chosen = [...usual.slice(first), ...usual.slice(0, first)].slice(0, plantedInOneRun);
  const { MISTAKES: selected } = process.env;
  const named = mistakes.filter(
    ({ name }) => selected === 'all' || (selected !== undefined && name.includes(selected)),
  );
  const wanted = selected === undefined ? chosen : named;
  assert.ok(wanted.length > 0);
  await Promise.all(
    wanted.map((mistake) =>
      t.test(mistake.name, async (t) => {
        const random = randomFrom(seedFor(t));
        const started = performance.now();
        const found = await findMistake(mistake, random);
        assert.ok(found, `not within ${patienceMs} ms`);
        t.diagnostic(`${((performance.now() - started) / 1000).toFixed(1)} s, ${found.kind}: ${mistake.name}`);
      }),
    ),
  );
});

async function findMistake(mistake: Mistake, random: Random): Promise<{ readonly kind: string } | undefined> {
  const plant = pathToFileURL(path.join(import.meta.dirname, 'plant.ts'));
  plant.searchParams.set('mistake', mistake.name);
  const nodeArguments = ['--import', plant.href];
  const end = performance.now() + patienceMs;
  const findingOf = (life: Life | undefined): Finding | undefined => {
    const verdict = life === undefined ? undefined : check(life);
    return typeof verdict === 'object' ? verdict : undefined;
  };
  if (mistake.needs === 'schedules') return findBySchedules(mistake, nodeArguments, random, end);
  if (mistake.needs === 'a crash') {
    return withCrashingService(nodeArguments, async (service) => {
      let found: Finding | undefined;
      while (found === undefined && performance.now() < end) {
        found = findingOf(await service.live('hosts', random.fork(), true));
      }
      return found;
    });
  }
  const { processes = 1, scene = 'hosts', statements = [], isAlone = false } = mistake;
  return withSharedDatabase(
    processes === 1 ? 'embedded' : 'postgresql',
    async (config): Promise<Finding | undefined> => {
      const start = () => startServer(config, nodeArguments);
      const servers = await Promise.all(Array.from({ length: processes }, start));
      const connections = servers.map(({ url }) => connectTo(url));
      const [first] = connections;
      const [server] = servers;
      assert.ok(first && server);
      try {
        for (const statement of statements) await server.query(statement);
        let found: Finding | undefined;
        const look = async (work: Work, choice: Random): Promise<void> => {
          while (found === undefined && performance.now() < end) {
            // With a mistake in reads this may fail. That shows the mistake as well, but not to the checker.
            const arena = await makeArena(first, choice, scene, scene === 'hosts' ? pauseMs : 0);
            if (arena === undefined) continue;
            // Not `found ??= await ...`: this would replace what another look finds meanwhile.
            const finding =
              findingOf(await live(arena, connections, choice, work)) ?? (await findWrongRoot(server.query, arena));
            found ??= finding;
          }
        };
        const wanted = looks[scene].slice(0, isAlone ? 1 : undefined);
        await Promise.all(wanted.map((work) => look(work, random.fork())));
        return found;
      } finally {
        for (const connection of connections) connection.close();
        await Promise.all(servers.map((server) => server.kill()));
      }
    },
  );
}

/** How many schedules of claims that wait run at the same time. */
const schedulesAtOnce = 8;

function findBySchedules(
  { processes = 1 }: Mistake,
  nodeArguments: readonly string[],
  random: Random,
  end: number,
): Promise<{ readonly kind: string } | undefined> {
  return withSharedDatabase('postgresql', async (config) => {
    const servers = await Promise.all(Array.from({ length: processes }, () => startServer(config, nodeArguments)));
    const clients = servers.map(({ url }) => clientOf(url));
    const [server] = servers;
    assert.ok(server);
    try {
      for (const statement of noteWrites) await server.query(statement);
      let found: { readonly kind: string } | undefined;
      const look = async (choice: Random): Promise<void> => {
        while (found === undefined && performance.now() < end) {
          const looked = await liveSchedule({ clients, query: server.query }, choice);
          found ??= looked.found;
        }
      };
      await Promise.all(Array.from({ length: schedulesAtOnce }, () => look(random.fork())));
      return found;
    } finally {
      for (const client of clients) client.close();
      await Promise.all(servers.map((each) => each.kill()));
    }
  });
}
