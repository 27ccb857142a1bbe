/**
 * No wake-up is lost, and the order is kept, in random schedules of claims that wait, through two processes. `SCHEDULES=10000` tries that
 * many on PostgreSQL, and a tenth of them on the embedded database.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom, seedFor } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { type Engine, engines } from '../support/engines.ts';
import { clientOf } from './client.ts';
import { liveSchedule, noteWrites } from './schedules.ts';

const { SCHEDULES: configured } = process.env;
const plans: Readonly<Record<Engine, { readonly processes: number; readonly schedules: number }>> = {
  embedded: { processes: 1, schedules: 40 },
  postgresql: { processes: 2, schedules: 150 },
};
const atOnce = 10;

for (const engine of engines) {
  test(
    `claims that fit are placed, and in order, on ${engine}`,
    configured === undefined ? {} : { timeout: 7_200_000 },
    (t) => {
      const random = randomFrom(seedFor(t));
      const { processes, schedules } = plans[engine];
      return withSharedDatabase(engine, async (config) => {
        const servers = await Promise.all(Array.from({ length: processes }, () => startServer(config)));
        const clients = servers.map(({ url }) => clientOf(url));
        const [server] = servers;
        assert.ok(server);
        try {
          for (const statement of noteWrites) await server.query(statement);
          let left = configured === undefined ? schedules : Number(configured) * (engine === 'embedded' ? 0.1 : 1);
          let slowestMs = 0;
          const go = async (choice: typeof random): Promise<void> => {
            while (left > 0) {
              left -= 1;
              const { found, slowestMs: ms } = await liveSchedule({ clients, query: server.query }, choice);
              slowestMs = Math.max(slowestMs, ms);
              assert.equal(found && `${found.kind}: ${found.text}`, undefined);
            }
          };
          await Promise.all(Array.from({ length: atOnce }, () => go(random.fork())));
          t.diagnostic(`the slowest claim that fitted waited for ${Math.round(slowestMs)} ms`);
        } finally {
          for (const each of servers) assert.equal(each.log(), '');
          for (const client of clients) client.close();
          await Promise.all(servers.map((each) => each.kill()));
        }
      });
    },
  );
}
