/** The cache: a map with a limit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cache, interning } from '../../src/text/cache.ts';
import { randomFrom, seedFor } from '../races/random.ts';

test('a cache forgets the entry that was set longest ago, also after others were set again, deleted or cleared', (t) => {
  const { below } = randomFrom(seedFor(t));
  for (const most of [0, 1, 2, 7, 100]) {
    const cache = new Cache<number, number>(most);
    /** The same as a list, the oldest first. */
    let expected: (readonly [number, number])[] = [];
    for (let step = 0; step < 5_000; step += 1) {
      const key = below(2 * most + 2);
      const others = expected.filter(([other]) => other !== key);
      const kind = below(100);
      if (kind === 0) {
        cache.clear();
        expected = [];
      } else if (kind < 20) {
        assert.equal(cache.delete(key), others.length < expected.length);
        expected = others;
      } else {
        cache.set(key, step);
        expected = most === 0 ? [] : [...others, [key, step] as const].slice(-most);
      }
      assert.equal(cache.get(key), expected.find(([other]) => other === key)?.[1]);
      assert.deepEqual([...cache], expected);
    }
  }
});

test('equal values share one object while it is remembered', () => {
  const shared = interning<object>(2);
  const [one, two, three] = [{}, {}, {}];
  assert.equal(shared('a', one), one);
  assert.equal(shared('a', two), one);
  assert.equal(shared('b', two), two);
  assert.equal(shared('c', three), three);
  assert.equal(shared('a', three), three);
});
