import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { giveBackMemory } from '../src/start/give_back_memory.ts';

const million = 1_000_000;

test('unused memory is returned to the system, which V8 alone would not do', async () => {
  let held: object[] | undefined = Array.from({ length: million }, (_, n) => ({ n, text: `${n}` }));
  const full = process.memoryUsage().heapTotal;
  assert.equal(held.length, million);
  held = undefined;
  await sleep(0); // until no frame of the stack refers to the objects any more
  await giveBackMemory();
  const givenBack = full - process.memoryUsage().heapTotal;
  assert.ok(givenBack > 50 * million, `${givenBack} bytes were given back, of at least 80 million`);
});
