import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inBatches } from '../../src/batches.ts';

const turn = async () => {};

test('who asks while a batch is under way goes in the next, with all others who did, up to the limit', async () => {
  const batches: (readonly number[])[] = [];
  const ends: (() => void)[] = [];
  const double = inBatches<number, number>({ turn }, 3, async (items) => {
    batches.push(items);
    await new Promise<void>((resolve) => ends.push(resolve));
    return (item) => 2 * item;
  });
  const first = double(1);
  await turn();
  await turn();
  const others = [2, 3, 4, 5].map(double);
  assert.deepEqual(batches, [[1]]);
  ends[0]?.();
  assert.equal(await first, 2);
  while (ends.length < 2) await turn();
  ends[1]?.();
  while (ends.length < 3) await turn();
  ends[2]?.();
  assert.deepEqual(await Promise.all(others), [4, 6, 8, 10]);
  assert.deepEqual(batches, [[1], [2, 3, 4], [5]]);
});

test('what fails for one is told to him alone, what fails for all to all, and the next batch is not concerned', async () => {
  const check = inBatches<string, string>({ turn }, 9, async (items) => {
    if (items.includes('all')) throw new Error('all');
    return (item) => {
      if (item === 'one') throw new Error('one');
      return item;
    };
  });
  const alone = check('alone');
  await turn();
  await turn();
  const settled = await Promise.allSettled([alone, check('one'), check('neighbour')]);
  const told = settled.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.message));
  assert.deepEqual(told, ['alone', 'one', 'neighbour']);
  const failed = await Promise.allSettled([check('all'), check('all')]);
  assert.ok(failed.every(({ status }) => status === 'rejected'));
  assert.equal(await check('next'), 'next');
});
