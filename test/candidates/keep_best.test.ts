/** What keeps the best of many items keeps what a stable sort puts first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepBest } from '../../src/search/order.ts';

test('keepBest keeps the items that a stable sort puts first, also where many are equal', () => {
  for (const limit of [0, 1, 2, 7, 100, 1_000]) {
    for (const kinds of [1, 3, 50, 10_000]) {
      const items = Array.from({ length: 500 }, (_, index) => ({ index, value: (index * 7_919 + limit) % kinds }));
      const compare = (a: { readonly value: number }, b: { readonly value: number }) => b.value - a.value;
      const best = keepBest(limit, compare);
      for (const item of items) best.note(item);
      assert.deepEqual(best.list(), items.toSorted(compare).slice(0, limit), `${limit} of ${kinds} kinds`);
    }
  }
});

test('10,000 of 100,000 items are kept within a few comparisons for each', () => {
  let comparisons = 0;
  const best = keepBest<number>(10_000, (a, b) => {
    comparisons += 1;
    return a - b;
  });
  for (let number = 0; number < 100_000; number++) best.note((number * 7_919) % 100_003);
  assert.ok(comparisons < 20 * 100_000, `${comparisons}`);
});
