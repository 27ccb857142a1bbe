import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inBatches } from '../../src/batches.ts';
import { onBehalfOf, requestsServed } from '../../src/request_ids.ts';

const turn = async () => {};

test('who asks while a batch is under way goes in the next, with all others who did, up to the limit', async () => {
  const batches: (readonly number[])[] = [];
  const ends: (() => void)[] = [];
  const double = inBatches<number, number>({ turn }, { limit: 3 }, async (items) => {
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
  const check = inBatches<string, string>({ turn }, { limit: 9 }, async (items) => {
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

test('what takes long is left to itself: others go on, but for those who ask for the same', async () => {
  const batches: (readonly string[])[] = [];
  const release = Promise.withResolvers<void>();
  const lock = inBatches<string, string>({ turn }, { limit: 9, concerns: (name) => name[0] }, async (names) => {
    batches.push(names);
    if (names.includes('a held')) await release.promise;
    return (name) => name;
  });
  const held = lock('a held');
  await turn();
  await turn();
  const same = lock('a later');
  assert.equal(await lock('b'), 'b', 'while the first is under way still');
  assert.equal(await lock('c'), 'c');
  assert.deepEqual(batches, [['a held'], ['b'], ['c']]);
  release.resolve();
  assert.deepEqual(await Promise.all([held, same]), ['a held', 'a later']);
  assert.deepEqual(batches.at(-1), ['a later']);
});

test('what is done is done for all who asked, and what each is told, for him', async () => {
  const served = () => requestsServed().map(({ requestId }) => requestId);
  const ask = inBatches<string, readonly string[][]>({ turn }, { limit: 9 }, async () => {
    const together = served();
    return () => [together, served()];
  });
  const askAs = (requestId: string) => onBehalfOf([{ requestId, globalRequestId: undefined }], () => ask(requestId));
  const first = askAs('a');
  await turn();
  await turn();
  assert.deepEqual(await Promise.all([first, askAs('b'), askAs('c')]), [
    [['a'], ['a']],
    [['b', 'c'], ['b']],
    [['b', 'c'], ['c']],
  ]);
});
