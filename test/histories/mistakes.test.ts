/**
 * Each mistake that is planted into the service shows in what clients see of it. A run plants some of them, chosen by its seed;
 * `MISTAKES=all` plants all, `MISTAKES='a term'` those with this text in their names.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { withPlace } from '../races/place.ts';
import { type Random, randomFrom, seedFor } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { makeArena } from './arena.ts';
import { check, type Finding } from './check.ts';
import { connectTo } from './connection.ts';
import { dense, live, paced, type Work } from './live.ts';
import { type Mistake, mistakes, withMistake } from './mistakes.ts';

/** On an idle machine most are found within 10 s, and each within a minute; beside other tests it takes several times as long. */
const patienceMs = 420_000;
const plantedInOneRun = 5;
/** Between the requests that prepare a history: longer than a mistake about the time of reads lasts. */
const pauseMs = 60;

test('each mistake can be planted into the present source', () => {
  for (const mistake of mistakes) withMistake(mistake);
});

test('each planted mistake is found', { concurrency: 2 }, async (t) => {
  assert.ok(mistakes.length >= 15);
  const random = randomFrom(seedFor(t));
  const first = random.below(mistakes.length);
  const chosen = [...mistakes.slice(first), ...mistakes.slice(0, first)].slice(0, plantedInOneRun);
  const { MISTAKES: asked } = process.env;
  const named = mistakes.filter(({ name }) => asked === 'all' || (asked !== undefined && name.includes(asked)));
  const wanted = asked === undefined ? chosen : named;
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

async function findMistake({ name, processes = 1 }: Mistake, random: ReturnType<typeof randomFrom>) {
  const plant = pathToFileURL(path.join(import.meta.dirname, 'plant.ts'));
  plant.searchParams.set('mistake', name);
  return withPlace(processes === 1 ? 'embedded' : 'postgresql', async (config): Promise<Finding | undefined> => {
    const start = () => startServer(config, ['--import', plant.href]);
    const servers = await Promise.all(Array.from({ length: processes }, start));
    const connections = servers.map(({ url }) => connectTo(url));
    const [first] = connections;
    assert.ok(first);
    try {
      const end = performance.now() + patienceMs;
      let found: Finding | undefined;
      const look = async (work: Work, choice: Random): Promise<void> => {
        while (found === undefined && performance.now() < end) {
          // With a mistake in reads this may fail. That shows the mistake as well, but not to the checker.
          const arena = await makeArena(first, choice, pauseMs);
          if (arena === undefined) continue;
          const verdict = check(await live(arena, connections, choice, work));
          if (typeof verdict === 'object') found ??= verdict;
        }
      };
      await Promise.all([dense, paced, paced].map((work) => look(work, random.fork())));
      return found;
    } finally {
      for (const connection of connections) connection.close();
      await Promise.all(servers.map((server) => server.kill()));
    }
  });
}
