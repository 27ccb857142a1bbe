import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { LockWaitTooLong, openSlowLane } from '../../db/engine/slow_lane.ts';
import { sqlstate } from '../../db/engine/sqlstate.ts';
import { type BatchOptions, type Entry, inBatches } from '../../src/batching/batches.ts';
import { onBehalfOf, requestsServed } from '../../src/log/request_ids.ts';
import { until } from '../until.ts';

const ticks = async (count: number): Promise<void> => {
  for (let tick = 0; tick < count; tick += 1) await setImmediate();
};

const databaseError = (code: string) => Object.assign(new Error(code), { severity: 'ERROR', code });

const databaseOf = (statementTimeoutMs = 0, turn = async () => {}) => ({
  turn,
  slowLane: openSlowLane(),
  statementTimeoutMs,
});

/** Batches of names, of which a record is kept; `perform` settles what it likes, and the others are answered by their names. */
function recorded(
  options: Partial<BatchOptions<string>>,
  perform: (batch: readonly Entry<string, string>[]) => Promise<void> | void = () => {},
) {
  const batches: (readonly string[])[] = [];
  const ask = inBatches<string, string>(databaseOf(), { limit: 9, ...options }, async (batch) => {
    batches.push(batch.map(({ item }) => item));
    await setImmediate();
    await perform(batch);
    for (const { item, resolve } of batch) resolve(item);
  });
  return { ask, batches };
}

const reasonOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    (answer) => answer,
    (error) => error.message,
  );

test('items that come while a batch is under way go in the next batches, up to the limit', async () => {
  const { ask, batches } = recorded({ limit: 3 });
  const first = ask('a');
  await ticks(1);
  assert.deepEqual(await Promise.all([first, ...['b', 'c', 'd', 'e'].map(ask)]), ['a', 'b', 'c', 'd', 'e']);
  assert.deepEqual(batches, [['a'], ['b', 'c', 'd'], ['e']]);
});

test('a batch is also for the items that come while it is gathered, as long as more come, and not for ever', async () => {
  const come = [['b', 'c'], ['d'], [], ['e'], ['f'], ['g'], ['h'], ['i'], ['j']];
  const batches: (readonly string[])[] = [];
  const turn = async () => {
    for (const item of come.shift() ?? []) void ask(item);
  };
  const ask = inBatches<string, string>(databaseOf(0, turn), { limit: 9 }, async (batch) => {
    batches.push(batch.map(({ item }) => item));
    for (const { item, resolve } of batch) resolve(item);
  });
  await ask('a');
  await until('all items are in batches', () => batches.flat().length === 10);
  assert.deepEqual(batches, [['a', 'b', 'c', 'd'], ['e', 'f', 'g', 'h', 'i'], ['j']]);
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

test('if one item makes its batch fail, the others are still done', async () => {
  const { ask, batches } = recorded({ isOfOne: () => true }, (batch) => {
    if (batch.some(({ item }) => item === 'bad')) throw new Error('of one');
  });
  const told = ['a', 'b', 'bad', 'c'].map((item) => reasonOf(ask(item)));
  assert.deepEqual(await Promise.all(told), ['a', 'b', 'of one', 'c']);
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
  const told = ['a', 'rejected', 'b'].map((item) => reasonOf(ask(item)));
  assert.deepEqual(await Promise.all(told), ['first a', 'of one', 'first b']);
  await ticks(20);
  assert.deepEqual(batches, [['a', 'rejected', 'b']]);
});

test('an item put back after a promise waits for it, and later items with the same key wait for the item', async () => {
  const made = Promise.withResolvers<void>();
  const { ask, batches } = recorded({ orderOf: (item) => [item.slice(0, 1)] }, (batch) => {
    for (const { item, again } of batch) if (item === 'a new') again('a made', made.promise);
  });
  const asked = Promise.all(['a new', 'a later', 'b'].map(ask));
  await ticks(20);
  assert.deepEqual(batches, [['a new', 'b']]);
  made.resolve();
  assert.deepEqual(await asked, ['a made', 'a later', 'b']);
  assert.deepEqual(batches.slice(1), [['a made'], ['a later']]);
});

test('an item put back after a promise is rejected if the promise fails', async () => {
  const { ask } = recorded({}, (batch) => {
    for (const { item, again } of batch) if (item === 'a') again(item, Promise.reject(new Error('not made')));
  });
  assert.deepEqual(await Promise.all(['a', 'b'].map((item) => reasonOf(ask(item)))), ['not made', 'b']);
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
  const { ask, batches } = recorded({ orderOf: (item) => [item.slice(0, 1)] }, (batch) =>
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

test('once long batches have ended, as many may take long again', async () => {
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
  const { ask, batches } = recorded({ orderOf: (item) => [item.slice(0, 1)] }, (batch) => {
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

for (const kind of ['orderOf', 'locksOf'] as const) {
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

test('suspected items are tried at the same time only if they lock different rows', async () => {
  const ended = Promise.withResolvers<void>();
  const { ask, batches } = recorded({ locksOf: (item) => [item.slice(0, 1)] }, async (batch) => {
    if (batch.length === 4) throw databaseError(sqlstate.lockNotAvailable);
    await ended.promise;
  });
  const asked = Promise.all(['a 1', 'a 2', 'b 1', 'b 2'].map(ask));
  await ticks(20);
  assert.deepEqual(batches.slice(1), [['a 1'], ['b 1']]);
  ended.resolve();
  assert.deepEqual(await asked, ['a 1', 'a 2', 'b 1', 'b 2']);
});

test('however many items wait for a lock, each is rejected when its time is over, and no other item is', async () => {
  const isHeld = (item: string): boolean => item.startsWith('held');
  const ask = inBatches<string, string>(
    databaseOf(1_000),
    {
      limit: 9,
      orderOf: (item) => [item],
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
  const told = await Promise.allSettled(names.map(ask));
  for (const [place, name] of names.entries()) {
    const each = told[place];
    if (isHeld(name)) assert.ok(each?.status === 'rejected' && each.reason instanceof LockWaitTooLong, name);
    else assert.deepEqual(each, { status: 'fulfilled', value: name });
  }
});

const isTooLong = (told: PromiseSettledResult<unknown>): boolean =>
  told.status === 'rejected' && told.reason instanceof LockWaitTooLong;

test('an item refused a lock is rejected when its time is over, however many items are tried before it', async () => {
  for (const hasKeys of [true, false]) {
    const ask = inBatches<string, string>(
      databaseOf(500),
      {
        limit: 256,
        ...(hasKeys ? { orderOf: (item: string) => [item] } : {}),
        findLocked: async () => [],
        awaitLock: async (_key, { lockTimeoutMs }) => {
          await sleep(lockTimeoutMs);
          throw databaseError(sqlstate.lockNotAvailable);
        },
      },
      async (_batch, { lockTimeoutMs }) => {
        await sleep(lockTimeoutMs + 10);
        throw databaseError(sqlstate.lockNotAvailable);
      },
    );
    const cameAtMs = performance.now();
    const told = await Promise.allSettled(Array.from({ length: 1_000 }, (_, n) => ask(`${n}`)));
    assert.ok(told.every(isTooLong));
    assert.ok(performance.now() - cameAtMs < 8_000, `${performance.now() - cameAtMs} ms`);
  }
});

test('an item under way when its time is over is rejected if it must wait again', async () => {
  const timeoutMs = 50;
  const cameAtMs = performance.now();
  let isFirstWait = true;
  const ask = inBatches<string, string>(
    databaseOf(timeoutMs),
    {
      limit: 9,
      orderOf: (item) => [item],
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

test('an item that waits for an earlier item of the same key is rejected when its own time is over', async () => {
  const ask = inBatches<string, string>(
    databaseOf(1_000),
    { limit: 9, orderOf: (item) => [item.slice(0, 1)] },
    async (batch) => {
      for (const { item, again, resolve } of batch) {
        if (item === 'a first') again(item, new Promise(() => {}));
        else resolve(item);
      }
    },
  );
  const cameAtMs = performance.now();
  const told = await Promise.allSettled(['a first', 'a second', 'a third', 'b'].map(ask));
  assert.deepEqual(told.map(isTooLong), [true, true, true, false]);
  assert.ok(performance.now() - cameAtMs < 1_900, 'not one after the other');
});

test('rows that are often locked for a moment do not hide that an item waits for another lock', async () => {
  let isHeld = true;
  const ask = inBatches<string, string>(
    databaseOf(),
    {
      limit: 9,
      orderOf: (item) => [item],
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

test('however many items need a lock that no key stands for, the other items of their batch are done soon', async () => {
  let isHeld = true;
  const asks = { held: 0, free: 0 };
  const ask = inBatches<string, string>(
    databaseOf(),
    // All have the same row, so that the items that are suspected are tried one after the other.
    {
      limit: 256,
      orderOf: (item) => [item],
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
  const asked = names.map((name) => ({ name, answer: ask(name) }));
  await Promise.all(asked.filter(({ name }) => name.startsWith('free')).map(({ answer }) => answer));
  // Once all together, once in parts, and once alone: none is tried again before all of them were.
  assert.ok(asks.held < 1 + 16 + 120 + 16, `tried ${asks.held} times`);
  isHeld = false;
  await Promise.all(asked.map(({ answer }) => answer));
});

test('no batch starts beside a long batch that waits for the lock that all share', async (t) => {
  let isHeld = true;
  t.after(() => {
    isHeld = false;
  });
  let isAwaited = false;
  const { ask, batches } = recorded(
    {
      sharedLock: 'table',
      findLocked: async () => (isHeld ? ['table'] : []),
      awaitLock: async () => {
        isAwaited = true;
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
  await until('the lock was found', () => isAwaited);
  const others = Promise.all(['a', 'b'].map(ask));
  await ticks(20);
  assert.deepEqual(batches, [['first']]);
  isHeld = false;
  assert.deepEqual(await Promise.all([first, others]), ['first', ['a', 'b']]);
});

/*
 * A made-up database, whose locks other programs take and release at any moment.
 */

type Ask = {
  readonly kind: 'ask';
  readonly order: string;
  readonly row: string;
  /** What it needs besides, and no key tells of: a name that is unique, a row that a foreign key points at. */
  readonly untold: string;
  readonly fails: boolean;
};
type Event = Ask | { readonly kind: 'lock' | 'unlock'; readonly key: string } | { readonly kind: 'pause' };

const orderKeys = ['c1', 'c2', 'c3'];
const rowKeys = ['p1', 'p2', 'p3'];
/** A key that is never among what is found locked, as a name that another transaction has inserted. */
const hidden = 'c3';

const untoldKeys = ['u1', 'u2', 'u3'];

const key = fc.constantFrom(...orderKeys, ...rowKeys, ...untoldKeys);
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      order: fc.constantFrom(...orderKeys),
      row: fc.constantFrom(...rowKeys),
      untold: fc.constantFrom(...untoldKeys),
      fails: fc.nat(9).map((n) => n === 0),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('lock' as const), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unlock' as const), key }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'pause' as const }) },
);

test('with any locks, each item is answered once and in order, and waits for no lock that it does not need', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 60 }), fc.integer({ min: 1, max: 8 }), async (events, limit) => {
      const lockedKeys = new Set<string>();
      const needsLocked = ({ order, row, untold }: Ask): boolean =>
        [order, row, untold].some((needed) => lockedKeys.has(needed));
      const done: Ask[] = [];
      const underWay = new Set<string>();
      const ask = inBatches<Ask, Ask>(
        databaseOf(),
        {
          limit,
          orderOf: ({ order }) => [order],
          locksOf: ({ row }) => [row],
          isOfOne: (error) => error instanceof RangeError,
          findLocked: async (asked) => {
            await setImmediate();
            return asked.flatMap(({ order, row }) => [order, row]).filter((k) => k !== hidden && lockedKeys.has(k));
          },
          awaitLock: async (k) => {
            await setImmediate();
            if (lockedKeys.has(k)) throw databaseError(sqlstate.lockNotAvailable);
          },
        },
        async (batch) => {
          assert.ok(batch.length <= limit);
          assert.equal(new Set(batch.map(({ item }) => item.order)).size, batch.length, 'one of each order in a batch');
          for (const { item } of batch) {
            assert.ok(!underWay.has(item.order), 'one of each order at once');
            underWay.add(item.order);
          }
          await setImmediate();
          for (const { item } of batch) underWay.delete(item.order);
          if (batch.some(({ item }) => needsLocked(item))) throw databaseError(sqlstate.lockNotAvailable);
          if (batch.length > 1 && batch.some(({ item }) => item.fails)) throw new RangeError('of one');
          for (const { item, resolve, reject } of batch) {
            done.push(item);
            if (item.fails) reject(new RangeError('of one'));
            else resolve(item);
          }
        },
      );
      const asked: { readonly item: Ask; isAnswered: boolean }[] = [];
      const answers: Promise<unknown>[] = [];
      const askFor = (item: Ask): void => {
        const each = { item, isAnswered: false };
        asked.push(each);
        const answered = ask(item).finally(() => {
          each.isAnswered = true;
        });
        answers.push(reasonOf(answered));
      };
      /** Neither it nor an earlier item that it must follow needs what is locked. */
      const isFree = (place: number): boolean =>
        asked
          .slice(0, place + 1)
          .every(({ item, isAnswered }) => isAnswered || item.order !== asked[place]?.item.order || !needsLocked(item));
      for (const each of events) {
        if (each.kind === 'ask') askFor({ ...each });
        else if (each.kind === 'lock') lockedKeys.add(each.key);
        else if (each.kind === 'unlock') lockedKeys.delete(each.key);
        else {
          const freed = asked.filter((_, place) => isFree(place));
          // In the end an item that is free has been answered; how long that takes is not of interest here.
          await until('no item waits for a lock that it does not need', async () => {
            for (let round = 0; round < 200 && freed.some(({ isAnswered }) => !isAnswered); round += 1) await ticks(5);
            return freed.every(({ isAnswered }) => isAnswered);
          });
        }
      }
      lockedKeys.clear();
      const told = await Promise.all(answers);
      assert.deepEqual(
        told,
        asked.map(({ item }) => (item.fails ? 'of one' : item)),
      );
      assert.equal(done.length, asked.length, 'each is done once');
      for (const order of orderKeys) {
        const ofOrder = (items: readonly Ask[]) => items.filter((item) => item.order === order);
        assert.deepEqual(ofOrder(done), ofOrder(asked.map(({ item }) => item)));
      }
    }),
    { numRuns: 1000 },
  );
});
