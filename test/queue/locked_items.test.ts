import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { LockWaitTooLong, sqlstate } from '../../db/engine/failures.ts';
import { inBatches } from '../../src/queue/queue.ts';
import { until } from '../support/until.ts';
import { databaseError, databaseOf, recorded, ticks } from './recorded.ts';

test('while an item is repeated in the slow lane, other items are done', async () => {
  let isHeld = true;
  const { ask, batches } = recorded({}, (batch) => {
    if (isHeld && batch.some(({ item }) => item === 'held')) throw databaseError(sqlstate.lockNotAvailable);
  });
  const held = ask('held');
  await until('it is in the slow lane', () => batches.length > 2);
  let isDone = false;
  const free = ask('free').then(() => {
    isDone = true;
  });
  try {
    await until('the other item is done', () => isDone);
  } finally {
    isHeld = false;
  }
  await Promise.all([held, free]);
});

test('an item repeated in the slow lane can be put back, and later items with its key go on', async () => {
  let repeated = 0;
  const { ask, batches } = recorded({ conflictKeysOf: (item) => [item.slice(0, 1)] }, (batch) => {
    for (const { item, again } of batch) {
      if (item !== 'a first') continue;
      repeated += 1;
      if (repeated < 3) throw databaseError(sqlstate.lockNotAvailable);
      again('a again');
    }
  });
  assert.deepEqual(await Promise.all(['a first', 'a second'].map(ask)), ['a again', 'a second']);
  assert.deepEqual(batches, [['a first'], ['a first'], ['a first'], ['a again'], ['a second']]);
});

for (const kind of ['conflictKeysOf', 'locksOf'] as const) {
  test(`while a key is locked, items whose ${kind} names it are in no batch`, async () => {
    let isHeld = true;
    const { ask, batches } = recorded(
      {
        [kind]: (item: string) => [item.slice(0, 1)],
        findLocked: async () => (isHeld ? ['a'] : []),
        awaitLock: async () => {
          await ticks(1);
          if (isHeld) throw databaseError(sqlstate.lockNotAvailable);
        },
      },
      (batch) => {
        if (isHeld && batch.some(({ item }) => item.startsWith('a'))) throw databaseError(sqlstate.lockNotAvailable);
      },
    );
    const first = ask('a 1');
    await ticks(10);
    const second = ask('a 2');
    for (const item of ['b', 'c', 'd']) assert.equal(await ask(item), item);
    assert.deepEqual(batches, [['a 1'], ['b'], ['c'], ['d']]);
    isHeld = false;
    assert.deepEqual(await Promise.all([first, second]), ['a 1', 'a 2']);
  });
}

test('if the database does not say which keys are locked, the items of a batch that was refused a lock are tried alone', async () => {
  let isHeld = true;
  const { ask } = recorded(
    {
      conflictKeysOf: (item) => [item],
      findLocked: async () => {
        throw new Error('unavailable');
      },
    },
    (batch) => {
      if (isHeld && batch.some(({ item }) => item === 'held')) throw databaseError(sqlstate.lockNotAvailable);
    },
  );
  const [held, free] = ['held', 'free'].map(ask);
  assert.equal(await free, 'free');
  isHeld = false;
  assert.equal(await held, 'held');
});

test('suspected items are retried at the same time only if they lock different rows', async () => {
  const ended = Promise.withResolvers<void>();
  const { ask, batches } = recorded({ locksOf: (item) => [item.slice(0, 1)] }, async (batch) => {
    if (batch.length === 4) throw databaseError(sqlstate.lockNotAvailable);
    await ended.promise;
  });
  const answers = Promise.all(['a 1', 'a 2', 'b 1', 'b 2'].map(ask));
  await ticks(20);
  assert.deepEqual(batches.slice(1), [['a 1'], ['b 1']]);
  ended.resolve();
  assert.deepEqual(await answers, ['a 1', 'a 2', 'b 1', 'b 2']);
});

test('however many items wait for a lock, each is rejected at its time limit, and no other item is', async () => {
  const isHeld = (item: string): boolean => item.startsWith('held');
  const ask = inBatches<string, string>(
    databaseOf(1_000),
    {
      limit: 9,
      conflictKeysOf: (item) => [item],
      findLocked: async (items) => items.filter((item) => item.startsWith('held known')),
      awaitLock: async () => {
        await setImmediate();
        throw databaseError(sqlstate.lockNotAvailable);
      },
    },
    async (batch) => {
      await setImmediate();
      if (batch.some(({ item }) => isHeld(item))) throw databaseError(sqlstate.lockNotAvailable);
      for (const { item, resolve } of batch) resolve(item);
    },
  );
  const names = Array.from({ length: 60 }, (_, n) => `${['held known', 'held', 'free'][n % 3]} ${n}`);
  const outcomes = await Promise.allSettled(names.map(ask));
  for (const [index, name] of names.entries()) {
    const each = outcomes[index];
    if (isHeld(name)) assert.ok(each?.status === 'rejected' && each.reason instanceof LockWaitTooLong, name);
    else assert.deepEqual(each, { status: 'fulfilled', value: name });
  }
});

const isTooLong = (outcomes: PromiseSettledResult<unknown>): boolean =>
  outcomes.status === 'rejected' && outcomes.reason instanceof LockWaitTooLong;

test('an item refused a lock is rejected at its time limit, however many items are retried before it', async () => {
  for (const hasKeys of [true, false]) {
    let tried = 0;
    const ask = inBatches<string, string>(
      databaseOf(500),
      {
        limit: 256,
        ...(hasKeys ? { conflictKeysOf: (item: string) => [item] } : {}),
        findLocked: async () => [],
        awaitLock: async (_key, { lockTimeoutMs }) => {
          await sleep(lockTimeoutMs);
          throw databaseError(sqlstate.lockNotAvailable);
        },
      },
      async (_batch, { lockTimeoutMs }) => {
        tried += 1;
        await sleep(lockTimeoutMs + 10);
        throw databaseError(sqlstate.lockNotAvailable);
      },
    );
    const outcomes = await Promise.allSettled(Array.from({ length: 1_000 }, (_, n) => ask(`${n}`)));
    assert.ok(outcomes.every(isTooLong));
    // Some 170 can be tried within the limit.
    assert.ok(tried < outcomes.length / 2, `${tried} were tried`);
  }
});

test('an item under way at its time limit is rejected if it must wait again', async () => {
  const timeoutMs = 50;
  const cameAtMs = performance.now();
  let isFirstWait = true;
  const ask = inBatches<string, string>(
    databaseOf(timeoutMs),
    {
      limit: 9,
      conflictKeysOf: (item) => [item],
      findLocked: async (items) => items,
      awaitLock: async () => {
        await setImmediate();
        if (!isFirstWait) throw databaseError(sqlstate.lockNotAvailable);
        isFirstWait = false;
      },
    },
    async () => {
      // Under way for the second time, it is so until its time is over.
      while (!isFirstWait && performance.now() < cameAtMs + 2 * timeoutMs) await setImmediate();
      throw databaseError(sqlstate.lockNotAvailable);
    },
  );
  assert.ok((await Promise.allSettled([ask('a')])).every(isTooLong));
});

test('an item that waits for an earlier item of the same key is rejected at its time limit', async () => {
  const ask = inBatches<string, string>(
    databaseOf(1_200),
    { limit: 9, conflictKeysOf: (item) => [item.slice(0, 1)] },
    async (batch) => {
      // While it is under way an item is not rejected, however long it takes.
      if (batch.some(({ item }) => item === 'a first')) await sleep(3_000);
      for (const { item, resolve } of batch) resolve(item);
    },
  );
  const ended: string[] = [];
  const noteEnd = async (item: string): Promise<string> => {
    await ask(item).finally(() => ended.push(item));
    return item;
  };
  const outcomes = await Promise.allSettled(['a first', 'a second', 'a third'].map(noteEnd));
  assert.deepEqual(outcomes.map(isTooLong), [false, true, true]);
  assert.deepEqual(ended, ['a second', 'a third', 'a first']);
});

test('rows that are often locked for a moment do not hide that an item waits for another lock', async () => {
  let isHeld = true;
  const ask = inBatches<string, string>(
    databaseOf(),
    {
      limit: 9,
      conflictKeysOf: (item) => [item],
      locksOf: () => ['row'],
      findLocked: async () => ['row'],
      awaitLock: () => ticks(1),
    },
    async (batch) => {
      await setImmediate();
      if (isHeld && batch.some(({ item }) => item === 'held')) throw databaseError(sqlstate.lockNotAvailable);
      for (const { item, resolve } of batch) resolve(item);
    },
  );
  const names = ['a', 'held', 'b', 'c'];
  const [a, held, ...others] = names.map(ask);
  assert.deepEqual(await Promise.all([a, ...others]), ['a', 'b', 'c']);
  isHeld = false;
  assert.equal(await held, 'held');
});

test('new items are done while the batches search for the items that need a lock', async () => {
  const end = Promise.withResolvers<void>();
  const { ask } = recorded({}, async (batch) => {
    if (!batch.some(({ item }) => item.startsWith('held'))) return;
    if (batch.length === 1) await end.promise;
    else throw databaseError(sqlstate.lockNotAvailable);
  });
  const held = Promise.all(['held 1', 'held 2'].map(ask));
  await ticks(20);
  assert.deepEqual(await Promise.all(['a', 'b'].map(ask)), ['a', 'b']);
  end.resolve();
  assert.deepEqual(await held, ['held 1', 'held 2']);
});

test('however many items need a lock without a key, the other items of their batch are done soon', async () => {
  let isHeld = true;
  const asks = { held: 0, free: 0 };
  const ask = inBatches<string, string>(
    databaseOf(),
    // All have the same row, so that suspected items are retried one after the other.
    {
      limit: 256,
      conflictKeysOf: (item) => [item],
      locksOf: () => ['row'],
      findLocked: async () => [],
      awaitLock: () => ticks(1),
    },
    async (batch) => {
      await setImmediate();
      if (isHeld && batch.some(({ item }) => item.startsWith('held'))) {
        asks.held += 1;
        throw databaseError(sqlstate.lockNotAvailable);
      }
      asks.free += 1;
      for (const { item, resolve } of batch) resolve(item);
    },
  );
  const names = Array.from({ length: 128 }, (_, n) => (n % 16 === 15 ? `free ${n}` : `held ${n}`));
  const answers = names.map((name) => ({ name, answer: ask(name) }));
  await Promise.all(answers.filter(({ name }) => name.startsWith('free')).map(({ answer }) => answer));
  // Once all together, once in parts, and once alone: no item is retried again before all items were.
  assert.ok(asks.held < 1 + 16 + 120 + 16, `tried ${asks.held} times`);
  isHeld = false;
  await Promise.all(answers.map(({ answer }) => answer));
});

test('no batch starts beside a long batch that waits for the lock that all share', async (t) => {
  let isHeld = true;
  t.after(() => {
    isHeld = false;
  });
  let awaited = 0;
  const { ask, batches } = recorded(
    {
      sharedLock: 'table',
      findLocked: async () => (isHeld ? ['table'] : []),
      awaitLock: async () => {
        awaited += 1;
        await setImmediate();
        if (isHeld) throw databaseError(sqlstate.lockNotAvailable);
      },
    },
    async () => {
      // As a statement that waits for a table, which no time limit ends.
      while (isHeld) await setImmediate();
    },
  );
  const first = ask('first');
  await until('the lock is awaited again, although no item is in the queue', () => awaited > 1);
  const others = Promise.all(['a', 'b'].map(ask));
  await ticks(20);
  assert.deepEqual(batches, [['first']]);
  isHeld = false;
  assert.deepEqual(await Promise.all([first, others]), ['first', ['a', 'b']]);
});
