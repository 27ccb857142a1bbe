/**
 * What several clients saw of the service at once is explained by one order of their requests. `HISTORIES=10` tries ten times as many
 * histories of each scene.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, randomFrom, seedFor } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { type Engine, engines } from '../support/engines.ts';
import { makeArena, type Scene, scenes } from './arena.ts';
import { check } from './check.ts';
import { connectTo } from './connection.ts';
import { dense, type Life, live, paced, small, type Work } from './live.ts';
import { historyOn } from './mistakes.ts';
import { slowClaims } from './relied_mistakes.ts';
import { findWrongRoot } from './stored_roots.ts';

const { HISTORIES = '1' } = process.env;

/** How many histories there are, and how much happens in each. */
const plans: Readonly<Record<Scene, { readonly work: Work; readonly lives: Readonly<Record<Engine, number>> }>> = {
  hosts: { work: dense, lives: { embedded: 4, postgresql: 5 } },
  trees: { work: small, lives: { embedded: 3, postgresql: 6 } },
  classes: { work: small, lives: { embedded: 3, postgresql: 6 } },
  again: { work: paced, lives: { embedded: 1, postgresql: 2 } },
  limits: { work: dense, lives: { embedded: 3, postgresql: 8 } },
};

for (const engine of engines) {
  test(`one order explains all answers, on ${engine}`, { concurrency: true }, async (t) => {
    const random = randomFrom(seedFor(t));
    await withSharedDatabase(engine, async (config) => {
      const servers = await Promise.all((engine === 'embedded' ? [1] : [1, 2]).map(() => startServer(config)));
      const statuses = new Map<unknown, number>();
      const watch = (status: unknown) => statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const connections = servers.map(({ url }) => connectTo(url, { watch }));
      const [first] = connections;
      const [server] = servers;
      assert.ok(first && server);
      // In half of the runs usages are recorded, and consumers are reported. In half of them the commits of claims are slow.
      if (random.percent(50)) await server.query(historyOn);
      if (engine === 'postgresql' && random.percent(50))
        for (const statement of slowClaims) await server.query(statement);
      let operations = 0;
      const liveOnce = async (scene: Scene, work: Work, choice: Random): Promise<Life> => {
        const arena = await makeArena(first, choice, scene);
        assert.ok(arena);
        const life = await live(arena, connections, choice, work);
        operations += life.history.operations.length;
        const found = check(life);
        assert.equal(typeof found === 'object' ? found.text : found, undefined);
        assert.equal((await findWrongRoot(server.query, arena))?.text, undefined);
        assert.ok(life.reported.changes.length > 0);
        return life;
      };
      const manyRequests = (scene: Scene, random: Random) =>
        t.test(`${scene}, on ${engine}`, async () => {
          const { work, lives } = plans[scene];
          for (let left = lives[engine] * Number(HISTORIES); left > 0; left -= 1) {
            await liveOnce(scene, work, random.fork());
          }
        });
      /** Continues until some consumers were removed while a client waited for it; most histories have one. */
      const someEnds = (random: Random) =>
        t.test(`terms that expire, on ${engine}`, async (t) => {
          const removedAfterMs: number[] = [];
          const lookOn = async (choice: Random): Promise<void> => {
            for (let lives = 0; lives < 30 && removedAfterMs.length < 4; lives += 1) {
              removedAfterMs.push(...(await liveOnce('hosts', paced, choice)).removedAfterMs);
            }
          };
          // All of them end before the servers do.
          const looks = await Promise.allSettled(Array.from({ length: 3 }, () => lookOn(random.fork())));
          for (const look of looks) if (look.status === 'rejected') throw look.reason;
          assert.ok(removedAfterMs.length >= 4);
          t.diagnostic(
            `${removedAfterMs.length} consumers were removed, ${Math.max(...removedAfterMs)} ms after the end at most`,
          );
        });
      try {
        await Promise.all([...scenes.map((scene) => manyRequests(scene, random.fork())), someEnds(random.fork())]);
        t.diagnostic(`${operations} operations: ${JSON.stringify([...statuses])}`);
      } finally {
        for (const connection of connections) connection.close();
        await Promise.all(servers.map((server) => server.kill()));
      }
    });
  });
}
