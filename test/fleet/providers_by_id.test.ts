import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blankProvider, createProvidersById, type Provider } from '../../src/fleet/model/provider.ts';
import { randomFrom, seedFor } from '../races/random.ts';

test('ProvidersById has the same providers as a Map, whatever integers of PostgreSQL the ids are', (t) => {
  const random = randomFrom(seedFor(t));
  const odd = [0, -1, -(2 ** 31), 2 ** 31 - 1, 2 ** 31 - 2, 1_000_000];
  const providers = createProvidersById();
  const expected = new Map<number, Provider>();
  for (let step = 0; step < 5000; step++) {
    const id = random.percent(10) ? random.pick(odd) : 1 + random.below(300);
    if (random.percent(60)) {
      const provider = blankProvider(id);
      providers.add(provider);
      expected.set(id, provider);
    } else {
      providers.delete(id);
      expected.delete(id);
    }
    assert.equal(providers.get(id), expected.get(id));
    assert.equal(providers.size, expected.size);
  }
  for (const id of [...odd, ...Array(302).keys()]) assert.equal(providers.get(id), expected.get(id));
  assert.deepEqual(new Set(providers.values()), new Set(expected.values()));
  const ids = Array.from(providers.values(), ({ id }) => id).filter((id) => id >= 0);
  assert.deepEqual(
    ids,
    ids.toSorted((one, other) => one - other),
  );
});
