import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { onBehalfOf, requestsServed } from '../../src/log/log.ts';
import { inBatches } from '../../src/queue/queue.ts';
import { databaseOf, reasonOf, recorded, ticks } from './recorded.ts';

test('items that come while a batch is under way go in the next batches, up to the limit', async () => {
  const { ask, batches } = recorded({ limit: 3 });
  const first = ask('a');
  await ticks(1);
  assert.deepEqual(await Promise.all([first, ...['b', 'c', 'd', 'e'].map(ask)]), ['a', 'b', 'c', 'd', 'e']);
  assert.deepEqual(batches, [['a'], ['b', 'c', 'd'], ['e']]);
});

/** The batches of ten items, of which two come at once and the others in iterations of the event loop that take so long. */
async function gathered(t: TestContext, turnMs: number, come: string[][]): Promise<readonly (readonly string[])[]> {
  const batches: (readonly string[])[] = [];
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const turn = async () => {
    nowMs += turnMs;
    for (const item of come.shift() ?? []) void ask(item);
  };
  const ask = inBatches<string, string>(databaseOf(0, turn), { limit: 9 }, async (batch) => {
    batches.push(batch.map(({ item }) => item));
    for (const { item, resolve } of batch) resolve(item);
  });
  await Promise.all([ask('a'), ask('b')]);
  for (let ticked = 0; ticked < 1000 && batches.flat().length < 10; ticked += 1) await ticks(1);
  return batches;
}

test('a batch also has the items that come while it is gathered, for five iterations of the event loop at most', async (t) => {
  const come = [['c'], ['d'], [], ['e'], ['f'], ['g'], ['h'], ['i'], ['j']];
  assert.deepEqual(await gathered(t, 0.1, come), [['a', 'b'], ['c', 'd'], ['e', 'f', 'g', 'h', 'i'], ['j']]);
});

test('a batch begins after 2 ms, also where more items come in each turn', async (t) => {
  const come = [...'cdefghij'].map((item) => [item]);
  assert.deepEqual(await gathered(t, 1.1, come), [[...'ab'], [...'cd'], [...'ef'], [...'gh'], [...'ij']]);
});

test('an item that comes alone after a batch of one begins without another iteration of the event loop', async () => {
  let turns = 0;
  const turn = async () => {
    turns += 1;
  };
  const ask = inBatches<string, string>(databaseOf(0, turn), { limit: 9 }, async (batch) => {
    for (const { item, resolve } of batch) resolve(item);
  });
  for (const item of ['a', 'b', 'c']) await ask(item);
  assert.equal(turns, 0);
  await Promise.all(['d', 'e'].map(ask));
  await ask('f');
  assert.ok(turns > 0, 'others are expected after a batch of two');
});

test('on the embedded database also a single item waits until other requests are read, which happens at no other time', async () => {
  const batches: number[] = [];
  const come = ['b', 'c'];
  const turn = async () => {
    for (const item of come.splice(0)) void ask(item);
  };
  const database = { ...databaseOf(0, turn), engine: 'embedded' as const };
  const ask = inBatches<string, string>(database, { limit: 9 }, async (batch) => {
    batches.push(batch.length);
    for (const { item, resolve } of batch) resolve(item);
  });
  await ask('a');
  assert.deepEqual(batches, [3]);
});

test('an item is taken at any time after the batch before it, also while the queue gathers more', async () => {
  const isTaken = async (steps: number): Promise<boolean> => {
    const { ask, batches } = recorded({});
    await ask('first');
    for (let step = 0; step < steps; step += 1) await undefined;
    void ask('next');
    await ticks(9);
    return batches.length === 2;
  };
  const lost = [];
  for (let steps = 0; steps < 40; steps += 1) if (!(await isTaken(steps))) lost.push(steps);
  assert.deepEqual(lost, []);
});

test('an item that must be alone ends the batch before it', async () => {
  const { ask, batches } = recorded({ isAlone: (item) => item === 'alone' });
  await Promise.all(['first', 'a', 'alone', 'b', 'c'].map(ask));
  assert.deepEqual(batches, [['first', 'a'], ['alone'], ['b', 'c']]);
});

test('an item that is rejected fails alone, and an error of the batch fails all its items', async () => {
  const { ask } = recorded({}, (batch) => {
    for (const { item, reject } of batch) if (item === 'one') reject(new Error('of one'));
    if (batch.some(({ item }) => item === 'all')) throw new Error('of all');
  });
  assert.deepEqual(await Promise.all(['a', 'one'].map((item) => reasonOf(ask(item)))), ['a', 'of one']);
  assert.deepEqual(await Promise.all(['b', 'all'].map((item) => reasonOf(ask(item)))), ['of all', 'of all']);
  assert.equal(await ask('next'), 'next');
});

test('if one item makes its batch fail, the other items are still done', async () => {
  const { ask, batches } = recorded({ isOfOne: () => true }, (batch) => {
    if (batch.some(({ item }) => item === 'bad')) throw new Error('of one');
  });
  const outcomes = ['a', 'b', 'bad', 'c'].map((item) => reasonOf(ask(item)));
  assert.deepEqual(await Promise.all(outcomes), ['a', 'b', 'of one', 'c']);
  assert.deepEqual(batches, [['a', 'b', 'bad', 'c'], ['a'], ['b'], ['bad'], ['c']]);
});

test('an item that was answered or rejected is not put back, and only its first answer counts', async () => {
  const { ask, batches } = recorded({}, (batch) => {
    for (const { item, resolve, reject, again } of batch) {
      if (item === 'rejected') reject(new Error('of one'));
      resolve(`first ${item}`);
      // A batch of items that are put back all the same is answered, so that the test ends.
      if (batches.length === 1) again();
      reject(new Error('too late'));
    }
  });
  const outcomes = ['a', 'rejected', 'b'].map((item) => reasonOf(ask(item)));
  assert.deepEqual(await Promise.all(outcomes), ['first a', 'of one', 'first b']);
  await ticks(20);
  assert.deepEqual(batches, [['a', 'rejected', 'b']]);
});

test('an item put back after a promise waits for it, and later items with the same key wait for the item', async () => {
  const made = Promise.withResolvers<void>();
  const { ask, batches } = recorded({ conflictKeysOf: (item) => [item.slice(0, 1)] }, (batch) => {
    for (const { item, again } of batch) if (item === 'a new') again('a made', made.promise);
  });
  const answers = Promise.all(['a new', 'a later', 'b'].map(ask));
  await ticks(20);
  assert.deepEqual(batches, [['a new', 'b']]);
  made.resolve();
  assert.deepEqual(await answers, ['a made', 'a later', 'b']);
  assert.deepEqual(batches.slice(1), [['a made'], ['a later']]);
});

test('an item that lets later items pass does not delay later items with the same key, and goes after them', async () => {
  const made = Promise.withResolvers<void>();
  const { ask, batches } = recorded({ conflictKeysOf: (item) => [item.slice(0, 1)] }, (batch) => {
    for (const { item, again } of batch) if (item === 'a yields') again('a again', made.promise, true);
  });
  const answers = Promise.all(['a yields', 'a later', 'a last'].map(ask));
  await ticks(20);
  assert.deepEqual(batches, [['a yields'], ['a later'], ['a last']]);
  made.resolve();
  assert.deepEqual(await answers, ['a again', 'a later', 'a last']);
  assert.deepEqual(batches.slice(3), [['a again']]);
});

test('an item put back after a promise is rejected if the promise fails, and later items with its key go on', async () => {
  const made = Promise.withResolvers<void>();
  const { ask } = recorded({ conflictKeysOf: (item) => [item.slice(0, 1)] }, (batch) => {
    for (const { item, again } of batch) if (item === 'a new') again(item, made.promise);
  });
  const answers: unknown[] = [];
  for (const item of ['a new', 'a later', 'b']) void reasonOf(ask(item)).then((answer) => answers.push(answer));
  await ticks(20);
  made.reject(new Error('not made'));
  await ticks(20);
  assert.deepEqual(answers, ['b', 'not made', 'a later']);
});

test('a batch has the request ids of all its items', async () => {
  const served: string[][] = [];
  const { ask } = recorded({}, () => void served.push(requestsServed().map(({ requestId }) => requestId)));
  const askFor = (requestId: string) => onBehalfOf([{ requestId, globalRequestId: undefined }], () => ask(requestId));
  await Promise.all(['a', 'b'].map(askFor));
  assert.deepEqual(served, [['a', 'b']]);
});

test('the next batch starts beside a long batch, without items of the same key', async () => {
  const end = Promise.withResolvers<void>();
  const { ask, batches } = recorded({ conflictKeysOf: (item) => [item.slice(0, 1)] }, (batch) =>
    batch.some(({ item }) => item === 'a long') ? end.promise : undefined,
  );
  const long = ask('a long');
  await ticks(3);
  const same = ask('a later');
  assert.equal(await ask('b'), 'b');
  await ticks(20);
  assert.deepEqual(batches, [['a long'], ['b']]);
  end.resolve();
  assert.deepEqual(await Promise.all([long, same]), ['a long', 'a later']);
});

test('no item starts beside a long batch that locks the same row', async () => {
  const end = Promise.withResolvers<void>();
  const { ask, batches } = recorded({ locksOf: (item) => [item.slice(0, 1)] }, (batch) =>
    batch.some(({ item }) => item === 'a long') ? end.promise : undefined,
  );
  const long = ask('a long');
  await ticks(3);
  const same = ask('a later');
  assert.equal(await ask('b'), 'b');
  assert.deepEqual(batches, [['a long'], ['b']]);
  end.resolve();
  assert.deepEqual(await Promise.all([long, same]), ['a long', 'a later']);
});

test('after long batches have ended, the same number of batches may take long again', async () => {
  let end = Promise.withResolvers<void>();
  const { ask } = recorded({}, (batch) => (batch.some(({ item }) => item === 'long') ? end.promise : undefined));
  for (const count of [4, 1]) {
    const long: Promise<string>[] = [];
    for (let n = 0; n < count; n += 1) {
      long.push(ask('long'));
      await ticks(3);
      assert.equal(await ask('short'), 'short');
    }
    end.resolve();
    await Promise.all(long);
    await ticks(3);
    end = Promise.withResolvers();
  }
});
