/** Random histories by the service and by other programs at once, and what a plain bookkeeping makes of them one by one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { switchHistoryOn } from '../../db/statements/usage_history.ts';
import { randomFrom, randomUuid, seedFor } from '../races/random.ts';
import { engines } from '../support/engines.ts';
import { Books } from './books.ts';
import { type Actor, makeOwners, step } from './steps.ts';
import { checkHistory, clockTick, differences, run, switchOff, switchOn, takeInAll, withWorld } from './world.ts';

const stepsOfAll = { embedded: 120, postgresql: 600 };
const actorsOf = { embedded: 3, postgresql: 6 };

for (const engine of engines) {
  test(`on ${engine}, the open records always equal the allocations, while several writers write`, async (t) => {
    const random = randomFrom(seedFor(t));
    await withWorld(engine, async (world) => {
      await makeOwners(world);
      const uuids = (count: number) => Array.from({ length: count }, () => randomUuid(random));
      const [shared, unrecorded] = [uuids(4), uuids(2)];
      const actors = Array.from(
        { length: actorsOf[engine] },
        (): Actor => ({ world, random: random.fork(), shared, own: uuids(1), unrecorded }),
      );
      let left = stepsOfAll[engine];
      const stepping = actors.map(async (actor) => {
        while (left > 0) {
          left -= 1;
          const name = await step(actor);
          if (actor.random.percent(20)) assert.deepEqual(await differences(world), [], `after: ${name}`);
        }
      });
      const switching = async () => {
        while (left > stepsOfAll[engine] * 0.8) await clockTick();
        await switchHistoryOn(world.database);
        await takeInAll(world, 2);
        while (left > stepsOfAll[engine] * 0.4) await clockTick();
        await Promise.all([switchOff(world, 2), switchOff(world, 3)]);
        assert.deepEqual(await run(world, sql`select from open_usage_records`), []);
        await switchHistoryOn(world.database);
        await Promise.all([takeInAll(world, 2), takeInAll(world, 3)]);
      };
      const watching = async () => {
        for (; left > 0; await clockTick()) assert.deepEqual(await differences(world), []);
      };
      try {
        await Promise.all([...stepping, switching(), watching()]);
      } finally {
        left = 0;
        await Promise.allSettled(stepping);
      }
      await checkHistory(world);
      const [ended] = await run(world, sql<{ readonly count: number }>`select count(*)::integer from usage_records`);
      assert.ok((ended?.count ?? 0) > 10);
    });
  });

  test(`on ${engine}, the records are those of a plain bookkeeping`, async (t) => {
    const random = randomFrom(seedFor(t));
    await withWorld(engine, async (world) => {
      await makeOwners(world);
      const uuids = (count: number) => Array.from({ length: count }, () => randomUuid(random));
      const actor: Actor = { world, random, shared: uuids(2), own: uuids(2), unrecorded: uuids(1) };
      for (let count = 0; count < 15; count += 1) await step(actor);
      const books = await Books.open(world);
      await switchOn(world);
      await books.switched();
      for (let count = 0; count < 150; count += 1) {
        if (random.percent(2)) {
          await switchOff(world);
          await clockTick();
          await switchOn(world);
          await books.switched();
        } else {
          const name = await step(actor);
          await books.stepped(name);
        }
        await clockTick();
      }
      await checkHistory(world);
      await books.compare();
    });
  });
}
