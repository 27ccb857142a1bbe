import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findPlace } from '../../src/search/place.ts';
import { groupOf, requestOf } from '../candidates/plain_request.ts';
import { fleetOf, nodeAt, stockOf } from '../candidates/topology.ts';

/** Hosts, of which every second has a trait, and every fifth is full. */
const hosts = Array.from({ length: 400 }, (_, index) =>
  nodeAt(index, {
    stock: { VCPU: { ...stockOf(4), used: index % 5 === 0 ? 4 : 0 } },
    traits: index % 2 === 0 ? ['CUSTOM_FAST'] : [],
  }),
);
const isFull = (index: number): boolean => index % 5 === 0;
const isFast = (index: number): boolean => index % 2 === 0;

const fast = { required: ['CUSTOM_FAST'], forbidden: [] };
const granular = groupOf('', { VCPU: 1 }, { traits: { required: [['CUSTOM_FAST']], forbidden: [] } });
const plain = groupOf('', { VCPU: 1 });

for (const [name, request, fits] of [
  ['any host', requestOf([plain]), () => true],
  ['a host with a trait', requestOf([granular]), isFast],
  ['a root with a trait', requestOf([plain], { rootTraits: fast }), isFast],
] as const) {
  test(`of the hosts that fit a query for ${name} each is chosen at some time, and no other`, () => {
    const fleet = fleetOf(hosts);
    // The last hundred are not allowed.
    const indexes = [...fleet.byId.values()].map(({ id }) => id - 1);
    const not = new Set([...fleet.byId.values()].filter(({ id }) => id > 300));
    const chosen = new Set<number>();
    for (let times = 0; times < 6000; times++) {
      const found = findPlace(fleet, request, {
        allowed: { only: undefined, not },
        work: { steps: 1_000_000, forLists: 0 },
      });
      assert.ok(typeof found === 'object');
      chosen.add(found.anchor.id - 1);
    }
    const expected = indexes.filter((index) => index < 300 && !isFull(index) && fits(index));
    assert.deepEqual(
      [...chosen].sort((a, b) => a - b),
      expected,
    );
  });
}

test('the only host with room among many is found', () => {
  const full = hosts.map((host, index) =>
    index === 123 ? host : { ...host, stock: { ...host.stock, VCPU: { ...stockOf(4), used: 4 } } },
  );
  const fleet = fleetOf(full);
  for (let times = 0; times < 50; times++) {
    const found = findPlace(fleet, requestOf([plain]), {
      allowed: { only: undefined, not: new Set() },
      work: { steps: 1_000_000, forLists: 0 },
    });
    assert.ok(typeof found === 'object');
    assert.equal(found.anchor.id - 1, 123);
  }
});

test('where only some of many hosts are allowed, one of these is found, whose root has the traits', () => {
  const fleet = fleetOf(hosts);
  const only = new Set([...fleet.byId.values()].filter(({ id }) => id === 124 || id === 125));
  for (let times = 0; times < 50; times++) {
    const found = findPlace(fleet, requestOf([plain], { rootTraits: fast }), {
      allowed: { only, not: new Set() },
      work: { steps: 1_000_000, forLists: 0 },
    });
    assert.ok(typeof found === 'object');
    assert.equal(found.anchor.id - 1, 124);
  }
});
