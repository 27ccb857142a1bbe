/**
 * A server is killed at any moment: every write that was answered 204 is stored, and no write is stored in part. `KILLS=100` kills it as
 * often.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { engines } from '../support/engines.ts';
import { checkIntegrity, checkLedger, resolveUnknown } from './consistency.ts';
import { prepareRace } from './race.ts';
import { randomFrom, seedFor } from './random.ts';
import { startServer } from './server_process.ts';
import { withSharedDatabase } from './shared_database.ts';
import type { Race } from './writer.ts';

const kills = Number(process.env.KILLS ?? '5');

for (const engine of engines) {
  test(`${kills} times kill -9 on ${engine}`, async (t) => {
    const random = randomFrom(seedFor(t));
    let unknown = 0;
    await withSharedDatabase(engine, async (config) => {
      let server = await startServer(config);
      try {
        const race = await prepareRace(server.client, random, { writers: 16, shared: false });
        for (let kill = 1; kill <= kills; kill++) {
          const { client } = server;
          let killed = false;
          const racing = race.writers.map(async (writer) => {
            while (!killed) await writer.step(client);
          });
          // Each writer continues until its connection breaks. Any other error is a failure of the test.
          const outcomes = Promise.all(racing.map((each) => each.catch((error) => error)));
          // The time until the kill is counted in answers, because a slow machine sends few answers in a fixed time.
          const enough = answersOf(race) + random.below(60);
          const deadline = Date.now() + 3_000;
          while (answersOf(race) < enough && Date.now() < deadline) await sleep(1);
          await sleep(random.below(20));
          killed = true;
          await server.kill();
          for (const error of await outcomes) if (error !== undefined && !isBroken(error)) throw error;
          unknown += race.ledger.unknown.length;

          server = await startServer(config);
          await resolveUnknown(server.query, race);
          await checkIntegrity(server.query);
          await checkLedger(server.query, race);
        }
        t.diagnostic(`${unknown} requests were cut off; ${JSON.stringify(Object.fromEntries(race.answers))}`);
        assert.ok(unknown > kills, 'the kills must cut requests off');
        assert.ok((race.answers.get('204') ?? 0) > 5 * kills, 'there must be claims to lose');
      } finally {
        await server.kill();
      }
    });
  });
}

const answersOf = ({ answers }: Race): number => [...answers.values()].reduce((sum, count) => sum + count, 0);

const isBroken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(String(error.code));
