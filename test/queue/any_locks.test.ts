/** Batches on a made-up database, whose locks other programs take and release at any moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { sqlstate } from '../../db/engine/failures.ts';
import { inBatches } from '../../src/queue/queue.ts';
import { until } from '../support/until.ts';
import { databaseError, databaseOf, reasonOf, ticks } from './recorded.ts';

type Ask = {
  readonly kind: 'ask';
  readonly order: string;
  readonly row: string;
  /** A further lock without a key: a name that is unique, a row that a foreign key refers to. */
  readonly unnamed: string;
  readonly fails: boolean;
};
type Event = Ask | { readonly kind: 'lock' | 'unlock'; readonly key: string } | { readonly kind: 'pause' };

const orderKeys = ['c1', 'c2', 'c3'];
const rowKeys = ['p1', 'p2', 'p3'];
/** A key that is never found locked, such as a name that another transaction has inserted. */
const hidden = 'c3';

const unnamedKeys = ['u1', 'u2', 'u3'];

const key = fc.constantFrom(...orderKeys, ...rowKeys, ...unnamedKeys);
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      order: fc.constantFrom(...orderKeys),
      row: fc.constantFrom(...rowKeys),
      unnamed: fc.constantFrom(...unnamedKeys),
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
      const needsLocked = ({ order, row, unnamed }: Ask): boolean =>
        [order, row, unnamed].some((needed) => lockedKeys.has(needed));
      const done: Ask[] = [];
      const underWay = new Set<string>();
      const ask = inBatches<Ask, Ask>(
        databaseOf(),
        {
          limit,
          conflictKeysOf: ({ order }) => [order],
          locksOf: ({ row }) => [row],
          isOfOne: (error) => error instanceof RangeError,
          findLocked: async (requests) => {
            await setImmediate();
            return requests.flatMap(({ order, row }) => [order, row]).filter((k) => k !== hidden && lockedKeys.has(k));
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
      const requests: { readonly item: Ask; isAnswered: boolean }[] = [];
      const answers: Promise<unknown>[] = [];
      const askFor = (item: Ask): void => {
        const each = { item, isAnswered: false };
        requests.push(each);
        const answered = ask(item).finally(() => {
          each.isAnswered = true;
        });
        answers.push(reasonOf(answered));
      };
      /** Neither it nor an earlier item that it must follow needs what is locked. */
      const isFree = (index: number): boolean =>
        requests
          .slice(0, index + 1)
          .every(
            ({ item, isAnswered }) => isAnswered || item.order !== requests[index]?.item.order || !needsLocked(item),
          );
      for (const each of events) {
        if (each.kind === 'ask') askFor({ ...each });
        else if (each.kind === 'lock') lockedKeys.add(each.key);
        else if (each.kind === 'unlock') lockedKeys.delete(each.key);
        else {
          const freed = requests.filter((_, index) => isFree(index));
          // In the end an item that is free has been answered; how long that takes is not of interest here.
          await until('no item waits for a lock that it does not need', async () => {
            for (let round = 0; round < 200 && freed.some(({ isAnswered }) => !isAnswered); round += 1) await ticks(5);
            return freed.every(({ isAnswered }) => isAnswered);
          });
        }
      }
      lockedKeys.clear();
      const outcomes = await Promise.all(answers);
      assert.deepEqual(
        outcomes,
        requests.map(({ item }) => (item.fails ? 'of one' : item)),
      );
      assert.equal(done.length, requests.length, 'each is done once');
      for (const order of orderKeys) {
        const ofOrder = (items: readonly Ask[]) => items.filter((item) => item.order === order);
        assert.deepEqual(ofOrder(done), ofOrder(requests.map(({ item }) => item)));
      }
    }),
    { numRuns: 1000 },
  );
});
