import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BatchOptions, Entry } from '../../src/queue/items.ts';
import { inBatches } from '../../src/queue/queue.ts';
import { until } from '../support/until.ts';
import { databaseOf, ticks } from './recorded.ts';

/**
 * Batches of names, each of which ends when the test lets it, and those that were prepared. Names with a capital letter are worth it.
 *
 * @param perform may put items back; the others are answered with their names
 */
function preparing(
  options: Partial<BatchOptions<string, string>> = {},
  { canPrepare = () => true, perform = () => {}, pollSockets }: Partial<Behaviour> = {},
) {
  const batches: (readonly string[])[] = [];
  const prepared: (readonly string[])[] = [];
  const ends: (() => void)[] = [];
  const namesOf = (batch: readonly Entry<string, string>[]) => batch.map(({ item }) => item);
  const ask = inBatches<string, string>(
    databaseOf(0, pollSockets),
    {
      limit: 9,
      ahead: {
        isWorthIt: (item) => /^[A-Z]/.test(item),
        prepare: (batch) => {
          if (!canPrepare(namesOf(batch))) return false;
          prepared.push(namesOf(batch));
          return true;
        },
      },
      ...options,
    },
    async (batch) => {
      batches.push(namesOf(batch));
      await new Promise<void>((resolve) => ends.push(resolve));
      perform(batch, batches.length);
      for (const { item, resolve } of batch) resolve(item);
    },
  );
  const end = async (): Promise<void> => {
    await until('a batch is performed', () => ends.length > 0);
    ends.shift()?.();
    await ticks(20);
  };
  return { ask, batches, prepared, end };
}

type Behaviour = {
  readonly canPrepare: (names: readonly string[]) => boolean;
  readonly perform: (batch: readonly Entry<string, string>[], count: number) => void;
  readonly pollSockets: () => Promise<void>;
};

test('a batch is prepared while another one is performed, and is performed next as it was prepared', async () => {
  const { ask, batches, prepared, end } = preparing();
  const answers = [ask('a')];
  await ticks(20);
  answers.push(ask('b'), ask('C'));
  await ticks(20);
  assert.deepEqual(prepared, [['b', 'C']]);
  answers.push(ask('D'), ask('e'));
  await end();
  assert.deepEqual(batches, [['a'], ['b', 'C']]);
  await ticks(20);
  await end();
  assert.deepEqual(prepared, [
    ['b', 'C'],
    ['D', 'e'],
  ]);
  await end();
  assert.deepEqual(batches, [['a'], ['b', 'C'], ['D', 'e']]);
  assert.deepEqual(await Promise.all(answers), ['a', 'b', 'C', 'D', 'e']);
});

test('without an item that is worth preparing, or if it cannot be prepared, the next batch has all items that came meanwhile', async () => {
  const { ask, batches, prepared, end } = preparing({}, { canPrepare: (names) => !names.includes('C') });
  const answers = [ask('a')];
  await ticks(20);
  answers.push(ask('b'));
  await ticks(20);
  answers.push(ask('C'));
  await ticks(20);
  answers.push(ask('d'));
  await end();
  await end();
  assert.deepEqual(prepared, []);
  assert.deepEqual(batches, [['a'], ['b', 'C', 'd']]);
  assert.deepEqual(await Promise.all(answers), ['a', 'b', 'C', 'd']);
});

test('an item whose key is in the batch that is performed is not prepared, and stays in its order', async () => {
  const { ask, batches, prepared, end } = preparing({ conflictKeysOf: (item) => [item.slice(-1)] });
  const answers = [ask('first x')];
  await ticks(20);
  answers.push(ask('Second x'), ask('Only y'), ask('Third x'));
  await ticks(20);
  assert.deepEqual(prepared, [['Only y']]);
  for (let count = 0; count < 4; count += 1) await end();
  assert.deepEqual(batches, [['first x'], ['Only y'], ['Second x'], ['Third x']]);
  await Promise.all(answers);
});

test('a batch that has not been prepared when the one before it ends is not prepared any more, and its items go on', async () => {
  const polls: (() => void)[] = [];
  const pollSockets = () => new Promise<void>((resolve) => polls.push(resolve));
  const { ask, batches, prepared, end } = preparing({}, { pollSockets });
  const answers = ['a', 'b'].map(ask);
  await ticks(20);
  answers.push(ask('C'));
  assert.equal(polls.length, 1, 'more items are gathered before it is prepared');
  await end();
  for (const go of polls) go();
  await ticks(20);
  assert.deepEqual(batches, [['a', 'b'], ['C']]);
  assert.deepEqual(prepared, []);
  await end();
  assert.deepEqual(await Promise.all(answers), ['a', 'b', 'C']);
});

test('if items are put back, the items of the prepared batch go behind them in one batch', async () => {
  const { ask, batches, prepared, end } = preparing(
    {},
    {
      perform: (batch, count) => {
        if (count === 1) for (const { again } of batch) again();
      },
    },
  );
  const answers = [ask('a')];
  await ticks(20);
  answers.push(ask('B'));
  await ticks(20);
  answers.push(ask('c'));
  assert.deepEqual(prepared, [['B']]);
  await end();
  await end();
  assert.deepEqual(batches, [['a'], ['a', 'B', 'c']]);
  assert.deepEqual(await Promise.all(answers), ['a', 'B', 'c']);
});

test('beside a batch that takes long no prepared batch begins that locks the same', async () => {
  const { ask, batches, prepared, end } = preparing({ locksOf: (item) => [item.slice(-1)] });
  const answers = [ask('a x')];
  await ticks(20);
  answers.push(ask('B x'), ask('C y'));
  await until('a batch is prepared and another one begins', () => batches.length === 2);
  assert.deepEqual(prepared[0], ['B x', 'C y']);
  assert.deepEqual(batches, [['a x'], ['C y']]);
  await end();
  await end();
  await end();
  assert.deepEqual(batches, [['a x'], ['C y'], ['B x']]);
  await Promise.all(answers);
});

test('an item that counts for several fills a batch, and one that counts for too many goes alone', async () => {
  const { ask, batches, end } = preparing({ weightOf: (item) => item.length });
  const answers = [ask('a')];
  await ticks(20);
  answers.push(...['four', 'five5', 'b', 'much too long', 'c'].map(ask));
  for (let count = 0; count < 4; count += 1) await end();
  assert.deepEqual(batches, [['a'], ['four', 'five5'], ['b'], ['much too long'], ['c']]);
  await end();
  await Promise.all(answers);
});
