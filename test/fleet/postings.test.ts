import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createPlaces } from '../../src/fleet/places.ts';
import { Postings } from '../../src/fleet/postings.ts';
import { blankProvider, type Provider } from '../../src/fleet/provider.ts';

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
      const places = createPlaces();
      const postings = new Postings<string>(places);
      const known = new Map<number, { readonly provider: Provider; readonly keys: readonly string[] }>();
      for (const { id, gone, numbers } of steps) {
        const provider = known.get(id)?.provider ?? blankProvider(id);
        if (!known.has(id)) places.take(provider);
        const has = gone ? [] : keys.filter((key, place) => (numbers[place] ?? 0) % oneOf[key] === 0);
        postings.move(provider, known.get(id)?.keys ?? [], has);
        known.set(id, { provider, keys: has });
        if (!gone) continue;
        places.free(provider);
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

const ids = (providers: Iterable<Provider>): number[] => Array.from(providers, ({ id }) => id).sort((a, b) => a - b);
