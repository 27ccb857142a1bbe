import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sqlstate } from '../../db/sqlstate.ts';
import { onBehalfOf, requestsServed } from '../../src/request_ids.ts';
import { type BatchOptions, inBatches } from '../../src/turns/batches.ts';

const turn = async () => {};

const refusal = (code: string) => Object.assign(new Error(code), { severity: 'ERROR', code });

/**
 * Does what is asked for in batches, and keeps a record of them.
 *
 * @param failure what a batch fails by, where it does.
 */
function inRecordedBatches(options: BatchOptions<string>, failure: (items: readonly string[]) => unknown) {
  const batches: (readonly string[])[] = [];
  let underWay = 0;
  const ask = inBatches<string, string>({ turn }, options, async (items) => {
    batches.push(items);
    underWay += 1;
    assert.ok(underWay === 1 || (items.length === 1 && underWay <= 4), `${underWay} at once`);
    await setImmediate();
    underWay -= 1;
    const error = failure(items);
    if (error !== undefined) throw error;
    const askedBy = requestsServed().map(({ requestId }) => requestId);
    return (item) => `${item}, for ${askedBy}`;
  });
  /** What each is told, who asks on behalf of a request of its name. */
  const outcomesOf = (...items: string[]): Promise<string[]> =>
    Promise.all(
      items.map((item) =>
        onBehalfOf([{ requestId: item, globalRequestId: undefined }], () => ask(item)).catch(({ message }) => message),
      ),
    );
  return { batches, outcomesOf };
}

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

test('where several fail for the sake of one, each is done by itself, a few at once, before those who came later', async () => {
  const { batches, outcomesOf } = inRecordedBatches({ limit: 9, isOfOne: () => true }, (items) =>
    items.includes('bad') ? new Error('of one') : undefined,
  );
  const together = outcomesOf('a', 'bad', 'b');
  while (batches.length < 1) await turn();
  const later = outcomesOf('later', 'too');
  assert.deepEqual(await together, ['a, for a', 'of one', 'b, for b']);
  assert.deepEqual(await later, ['later, for later,too', 'too, for later,too']);
  assert.deepEqual(batches, [['a', 'bad', 'b'], ['a'], ['bad'], ['b'], ['later', 'too']]);
});

test('what fails otherwise is told to all, and not done once more', async () => {
  const { batches, outcomesOf } = inRecordedBatches({ limit: 9, isOfOne: () => false }, () => new Error('of all'));
  assert.deepEqual(await outcomesOf('a', 'b', 'c'), ['of all', 'of all', 'of all']);
  assert.deepEqual(batches, [['a', 'b', 'c']]);
});

test('of those who were parted and need the same lock one waits in vain for all', async () => {
  const concerns = (name: string) => (name.startsWith('free') ? undefined : name[0]);
  const { batches, outcomesOf } = inRecordedBatches({ limit: 9, concerns, isOfOne: () => true }, (items) => {
    if (!items.some((name) => name.includes('held'))) return undefined;
    return refusal(items.length > 1 ? sqlstate.lockNotAvailable : sqlstate.queryCanceled);
  });
  const together = outcomesOf('free held', 'free', 'a held', 'a', 'b', 'a too');
  while (batches.length < 1) await turn();
  const later = outcomesOf('a later');
  const inVain = sqlstate.queryCanceled;
  assert.deepEqual(await together, [inVain, 'free, for free', inVain, inVain, 'b, for b', inVain]);
  assert.deepEqual(await later, ['a later, for a later'], 'which was not together with it');
  assert.deepEqual(batches.slice(1), [['free held'], ['free'], ['a held'], ['b'], ['a later']]);
});

test('who was parted and loses otherwise does not cost those who need the same', async () => {
  const { outcomesOf } = inRecordedBatches({ limit: 9, concerns: () => 'same', isOfOne: () => true }, (items) =>
    items.includes('bad') ? refusal(sqlstate.uniqueViolation) : undefined,
  );
  assert.deepEqual(await outcomesOf('bad', 'a', 'b'), [sqlstate.uniqueViolation, 'a, for a', 'b, for b']);
});
