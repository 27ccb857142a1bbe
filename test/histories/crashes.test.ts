/**
 * What clients saw is explained by one order of their requests although a backend of PostgreSQL crashed meanwhile. `HISTORIES=10` tries
 * ten times as many.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom, seedFor } from '../races/random.ts';
import { scenes } from './arena.ts';
import { check } from './check.ts';
import { withCrashingService } from './crashing_service.ts';

const { HISTORIES = '1' } = process.env;

test('one order explains all answers, also those after the crash of a backend', async (t) => {
  const random = randomFrom(seedFor(t));
  await withCrashingService([], async (service) => {
    let unknown = 0;
    for (let lives = 0; lives < 4 * Number(HISTORIES); lives += 1) {
      const isUnseen = lives % 2 === 1;
      const life = await service.live(isUnseen ? 'hosts' : random.pick(scenes), random.fork(), isUnseen);
      assert.ok(life);
      const found = check(life);
      assert.equal(typeof found === 'object' ? found.text : found, undefined);
      unknown += life.history.operations.filter(({ completed }) => completed === undefined).length;
    }
    t.diagnostic(`${unknown} requests without an answer`);
    assert.ok(unknown > 0, 'the crashes must cut requests off');
  });
});
