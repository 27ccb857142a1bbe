/** What several clients saw of the service at once is explained by one order of their requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engines } from '../engines.ts';
import { withPlace } from '../races/place.ts';
import { type Random, randomFrom, seedFor } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { makeArena } from './arena.ts';
import { check } from './check.ts';
import { connectTo } from './connection.ts';
import { dense, live, paced, type Work } from './live.ts';

for (const engine of engines) {
  test(`one order explains all answers, on ${engine}`, async (t) => {
    const random = randomFrom(seedFor(t));
    await withPlace(engine, async (config) => {
      const servers = await Promise.all((engine === 'embedded' ? [1] : [1, 2]).map(() => startServer(config)));
      const statuses = new Map<unknown, number>();
      const watch = (status: unknown) => statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const connections = servers.map(({ url }) => connectTo(url, { watch }));
      const [first] = connections;
      assert.ok(first);
      try {
        let operations = 0;
        const removedAfterMs: number[] = [];
        const liveOnce = async (work: Work, choice: Random): Promise<void> => {
          const arena = await makeArena(first, choice);
          assert.ok(arena);
          const life = await live(arena, connections, choice, work);
          removedAfterMs.push(...life.removedAfterMs);
          operations += life.history.operations.length;
          const found = check(life);
          assert.equal(typeof found === 'object' ? found.text : found, undefined);
          assert.ok(life.told.changes.length > 0);
        };
        const manyRequests = async (choice: Random): Promise<void> => {
          for (let lives = 0; lives < 16; lives += 1) await liveOnce(dense, choice);
        };
        /** Goes on until some consumers were removed while a client waited for it; most runs have one. */
        const someEnds = async (choice: Random): Promise<void> => {
          for (let lives = 0; lives < 30 && removedAfterMs.length < 4; lives += 1) await liveOnce(paced, choice);
        };
        await Promise.all([manyRequests, someEnds, someEnds, someEnds].map((work) => work(random.fork())));
        assert.ok(removedAfterMs.length >= 4);
        t.diagnostic(
          `${removedAfterMs.length} consumers were removed, ${Math.max(...removedAfterMs)} ms after the end at most`,
        );
        t.diagnostic(`${operations} operations: ${JSON.stringify([...statuses])}`);
      } finally {
        for (const connection of connections) connection.close();
        await Promise.all(servers.map((server) => server.kill()));
      }
    });
  });
}
