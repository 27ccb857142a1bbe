/** Queries among thousands of trees, most of which have no room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { showEffects } from '../../src/fleet/model/own_writes.ts';
import { allTrees } from '../../src/search/anchors.ts';
import { findPlace } from '../../src/search/place.ts';
import type { CandidateRequest } from '../../src/search/request.ts';
import type { SearchOptions } from '../../src/search/search.ts';
import { search } from '../support/search.ts';
import { groupOf, requestOf } from './plain_request.ts';
import { fleetOf, type Node, nodeAt, sharingTrait, stockOf } from './topology.ts';

const hosts = 12_000;
const shared = 'bbbbbbbb-0000-4000-8000-000000000000';

/** Four of nine hosts have a trait. One in ninety has VCPU left, another one memory. */
const host = (_: unknown, index: number): Node =>
  nodeAt(index, {
    traits: index % 9 < 4 ? ['CUSTOM_FAST'] : [],
    aggregates: index % 100 === 1 ? [shared] : [],
    stock: {
      VCPU: { ...stockOf(8), used: index % 90 === 1 ? 0 : 8 },
      MEMORY_MB: { ...stockOf(8), used: index % 90 === 2 ? 0 : 8 },
    },
  });

const pool = nodeAt(hosts, { traits: [sharingTrait], aggregates: [shared], stock: { DISK_GB: stockOf(50) } });

const fast = { traits: { required: [['CUSTOM_FAST']], forbidden: [] } };
const requests: Readonly<Record<string, CandidateRequest>> = {
  'more than any host has': requestOf([groupOf('', { VCPU: 9 })]),
  'both, which no host has': requestOf([groupOf('', { VCPU: 8, MEMORY_MB: 8 })]),
  'what few hosts have': requestOf([groupOf('', { VCPU: 8 })]),
  'a trait that many have': requestOf([groupOf('', { VCPU: 8 }, fast)]),
  'a trait and too much': requestOf([groupOf('', { VCPU: 9 }, fast)]),
  'two groups that one host must serve': requestOf([groupOf('_A', { VCPU: 5 }), groupOf('_B', { VCPU: 3 })]),
  'what is shared': requestOf([groupOf('', { VCPU: 8, DISK_GB: 5 })]),
  'an order': requestOf([groupOf('', { VCPU: 8 })], {
    order: [{ kind: 'free', className: 'MEMORY_MB', mostFirst: true }],
  }),
};

test('a query finds the hosts that have room, and no others, in all ways to search', () => {
  const fleet = fleetOf([...Array.from({ length: hosts }, host), pool]);
  /** A host that has VCPU left gets memory as well. */
  const freed = { providerId: 2, bump: 1, used: [{ classId: 2, delta: -8 }] };
  for (const [what, request] of Object.entries(requests)) {
    const found = (way: Pick<SearchOptions, 'limited' | 'randomize'>, allowed = allTrees): readonly string[] =>
      Array.from(search(fleet, request, { strategy: 'depth-first', ...way, allowed }), (candidate) =>
        candidate.map(({ providers }) => providers.map(({ id }) => id).join(' ')).join('; '),
      ).sort();
    const ways = [true, false].flatMap((limited) => [true, false].map((randomize) => ({ limited, randomize })));
    const counts = [0, 1, 0].map((freedBefore) => {
      if (freedBefore === 1) showEffects(fleet, { effects: [freed] }, 1);
      // If the request names trees, each of them is visited.
      const expected = found({ limited: false, randomize: false }, { only: new Set(fleet.roots), not: new Set() });
      for (const way of ways) assert.deepEqual(found(way), expected, what);
      if (freedBefore === 1) showEffects(fleet, { effects: [freed] }, -1);
      return expected.length;
    });
    const [before = 0, between = 0, after] = counts;
    assert.equal(after, before, what);
    if (/more|much/.test(what)) assert.equal(between, 0, what);
    else if (/both/.test(what)) assert.deepEqual(counts, [0, 1, 0], what);
    else assert.ok(before > 0 && before < hosts / 16, `${what}: ${before}`);
  }
});

test('if nothing fits, a search visits few of the trees', () => {
  const fleet = fleetOf(Array.from({ length: hosts }, host));
  for (const [what, request] of Object.entries(requests)) {
    if (!/more|both|much/.test(what)) continue;
    findPlace(fleet, request, { allowed: allTrees, work: { steps: Infinity, forLists: 0 } }); // fills the caches
    const work = { steps: hosts, forLists: 0 };
    assert.equal(findPlace(fleet, request, { allowed: allTrees, work }), 'nowhere', what);
  }
});
