import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Postings } from '../../src/fleet/model/postings.ts';
import { blankProvider, createSlots, type Provider } from '../../src/fleet/model/provider.ts';

const providerCount = 300;
const keys = ['of most', 'of some', 'of few'] as const;
/**
 * For each key: one of this many providers has it. The first two keys have so many providers that they are stored as
 * bits.
 */
const oneOf = { 'of most': 2, 'of some': 4, 'of few': 20 } as const;

/**
 * A provider, by its id, is deleted or gets these keys. Each number decides for one key whether the provider has it.
 */
const anyStep = fc.record({
  id: fc.nat(providerCount - 1),
  gone: fc.nat(9).map((number) => number === 0),
  numbers: fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)),
});

test('each provider is found under exactly its keys, while providers are added, changed and deleted', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { minLength: 500, maxLength: 2000, size: 'max' }), (steps) => {
      const slots = createSlots();
      const postings = new Postings<string>(slots);
      const known = new Map<number, { readonly provider: Provider; readonly keys: readonly string[] }>();
      for (const { id, gone, numbers } of steps) {
        const provider = known.get(id)?.provider ?? blankProvider(id);
        if (!known.has(id)) slots.take(provider);
        const has = gone ? [] : keys.filter((key, index) => (numbers[index] ?? 0) % oneOf[key] === 0);
        postings.move(provider, known.get(id)?.keys ?? [], has);
        known.set(id, { provider, keys: has });
        if (!gone) continue;
        slots.free(provider);
        known.delete(id);
      }
      for (const key of keys) {
        const holders = [...known.values()].filter((each) => each.keys.includes(key)).map(({ provider }) => provider);
        const found = postings.of(key);
        assert.equal(found.size, holders.length);
        assert.deepEqual(ids(found), ids(holders));
        for (const { provider } of known.values()) assert.equal(found.has(provider), holders.includes(provider));
        assert.ok(!found.has(blankProvider(-1)), 'a provider that was deleted');
      }
    }),
    { numRuns: 50 },
  );
});

test('the providers of any of many keys that many have are found in a time that grows with the providers', () => {
  const slots = createSlots();
  const postings = new Postings<number>(slots);
  const providers = Array.from({ length: providerCount }, (_, id) => blankProvider(id));
  const many = Array.from({ length: 1000 }, (_, key) => key);
  for (const provider of providers) slots.take(provider);
  // One provider has none of the keys.
  for (const provider of providers.slice(1)) postings.move(provider, [], many);
  let read = 0;
  const of = postings.of.bind(postings);
  postings.of = (key) => {
    const set = of(key);
    return {
      size: set.size,
      has: (provider) => set.has(provider),
      *[Symbol.iterator]() {
        for (const provider of set) {
          read += 1;
          yield provider;
        }
      },
    };
  };
  const found = new Set(postings.smallest([many]));
  assert.ok(providers.slice(1).every((provider) => found.has(provider)));
  assert.ok(found.size <= providerCount && read <= 10 * providerCount, `${found.size} of ${read}`);
  assert.deepEqual(ids(postings.smallest([many, [7]])), ids(providers.slice(1)));
});

const ids = (providers: Iterable<Provider>): number[] => Array.from(providers, ({ id }) => id).sort((a, b) => a - b);
