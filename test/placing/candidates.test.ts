/** Where consumers are placed, against what the search finds in a fleet that is built for each of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Claim, ClaimRefused, type ConsumerClaim, type Placement } from '../../src/claims/claim.ts';
import { judgeBatch } from '../../src/claims/judge_batch.ts';
import { type BatchedClaim, onFreshFleet, pending } from '../../src/claims/pending_claim.ts';
import { onCertainFleet, placeConsumers } from '../../src/claims/placing.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { nameOf } from '../../src/fleet/model/names.ts';
import { treeOf } from '../../src/fleet/model/provider.ts';
import { keyValue, type TreeKey } from '../../src/fleet/model/tree_order.ts';
import { type Candidate, takenByProvider } from '../../src/search/choices.ts';
import type { CandidateRequest, OrderKey } from '../../src/search/request.ts';
import { anyRequest } from '../candidates/random_request.ts';
import { anyTopology } from '../candidates/random_topology.ts';
import { rowsOf } from '../candidates/topology.ts';
import { type AllRows, createFleet } from '../fleet/made_up_fleet.ts';
import { consumerClaim, consumerState, queriesOf } from '../support/claims.ts';
import { search } from '../support/search.ts';

/** Amounts by provider id and class id, as `1 2`. */
type Amounts = ReadonlyMap<string, number>;

const amountsOf = (
  rows: Iterable<{ readonly providerId: number; readonly classId: number; readonly used: number }>,
): Amounts => new Map(Array.from(rows, ({ providerId, classId, used }) => [`${providerId} ${classId}`, used]));

/** The same rows with other usage. */
const withUsage = (rows: AllRows, change: (key: string) => number): AllRows => ({
  ...rows,
  inventories: rows.inventories.map((row) => ({ ...row, used: row.used + change(`${row.provider} ${row.class}`) })),
});

/** What a consumer gets, and the providers of each group. */
const keyOf = (
  allocations: ConsumerClaim['allocations'],
  mappings: Iterable<readonly [string, readonly string[]]>,
): string =>
  JSON.stringify([
    Array.from(allocations, ([uuid, amounts]) => [uuid, ...[...amounts].sort()]).sort(),
    Array.from(mappings, ([suffix, uuids]) => [suffix, ...[...uuids].sort()]).sort(),
  ]);

const keyOfCandidate = (fleet: Fleet, candidate: Candidate): string =>
  keyOf(
    new Map(
      Array.from(takenByProvider(candidate), ([{ uuid }, amounts]) => [
        uuid,
        new Map(Array.from(amounts, ([id, amount]) => [nameOf(fleet.classes, id), amount])),
      ]),
    ),
    candidate.map(({ group, providers }) => [group.suffix, [...new Set(providers.map(({ uuid }) => uuid))]] as const),
  );

const steady = { strategy: 'depth-first', randomize: false, limited: false } as const;

/** The same rows, in which inventories that are used beyond their capacity, in part by the claim, have the capacity that is used. */
const withTolerance = (rows: AllRows, before: AllRows, own: Amounts): AllRows => ({
  ...rows,
  inventories: rows.inventories.map((row, index) => {
    const used = before.inventories[index]?.used ?? 0;
    const isBeyond = used > (row.total - row.reserved) * Number(row.allocation_ratio);
    if (!isBeyond || !own.has(`${row.provider} ${row.class}`)) return row;
    return { ...row, total: used, reserved: 0, allocation_ratio: 1 };
  }),
});

/**
 * The answer of GET for a fleet: with an order, the candidates of those trees only that come first.
 *
 * @param tolerant the same fleet, with the capacities that count for the requested amounts and not for the order
 */
function expectedKeys(
  rows: AllRows,
  tolerant: AllRows,
  request: CandidateRequest,
  keys: readonly TreeKey[],
): readonly string[] {
  const { fleet: ordered } = createFleet(rows);
  const { fleet } = createFleet(tolerant);
  const found = [...search(fleet, { ...request, order: [] }, steady)];
  const ranks = found.map((candidate) => rankOf(ordered, candidate, keys));
  const first = ranks.toSorted(compareRanks)[0] ?? [];
  return found
    .filter((_, index) => compareRanks(ranks[index] ?? [], first) === 0)
    .map((candidate) => keyOfCandidate(fleet, candidate));
}

const rankOf = ({ byId }: Fleet, [choice]: Candidate, keys: readonly TreeKey[]): readonly number[] => {
  const root = byId.get(choice?.providers[0]?.root.id ?? 0);
  return keys.map((key) => keyValue(key, root === undefined ? [] : treeOf(root)));
};

const compareRanks = (one: readonly number[], other: readonly number[]): number => {
  const index = one.findIndex((value, number) => value !== other[number]);
  return index === -1 ? 0 : (one[index] ?? 0) - (other[index] ?? 0);
};

const order = fc.constantFrom<readonly [readonly OrderKey[], readonly TreeKey[]]>(
  [[], []],
  [[{ kind: 'free', className: 'VCPU', mostFirst: false }], [{ kind: 'free', classId: 1, mostFirst: false }]],
  [[{ kind: 'free', className: 'VCPU', mostFirst: true }], [{ kind: 'free', classId: 1, mostFirst: true }]],
  [
    [
      { kind: 'prefer', traitName: 'CUSTOM_FAST' },
      { kind: 'free', className: 'MEMORY_MB', mostFirst: false },
    ],
    [
      { kind: 'prefer', traitId: 4 },
      { kind: 'free', classId: 2, mostFirst: false },
    ],
  ],
);

const anyCase = fc.record({
  topology: anyTopology,
  wanted: fc.array(fc.tuple(anyRequest, order), { minLength: 1, maxLength: 4 }),
  /** How much of what is used in each inventory the first consumer has. */
  shares: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 28, maxLength: 28 }),
});

/** The case with rows, with claims of a consumer for each request, and with what the first of them has. */
function prepare({ topology, wanted, shares }: typeof anyCase extends fc.Arbitrary<infer Case> ? Case : never) {
  // With sharing it is open to which tree a candidate belongs, so it does not show the order of trees.
  const shares_ = topology.some(({ traits }) => traits.includes('MISC_SHARES_VIA_AGGREGATE'));
  const requests = wanted.map(([request, [order, keys]]) =>
    shares_ ? { request, keys: [] } : { request: { ...request, order }, keys },
  );
  const rows = rowsOf(topology);
  const { fleet } = createFleet(rows);
  const own = rows.inventories.flatMap(({ provider: providerId, class: classId, used }, index) => {
    const amount = Math.min(used, shares[index] ?? 0);
    return amount === 0 ? [] : [{ id: index + 1, providerId, classId, used: amount }];
  });
  const consumers = requests.map(({ request }, index) => consumerClaim(`consumer ${index}`, queriesOf(request)));
  const first = consumerState('consumer 0', own);
  const states = new Map([[first.uuid, first]]);
  const keysByIndex = requests.map(({ keys }) => keys);
  return {
    rows,
    fleet,
    own: amountsOf(own),
    consumers,
    states,
    requests: requests.map(({ request }) => request),
    keysByIndex,
  };
}

const keysPlaced = ({ claim, mappings }: Placement): readonly string[] =>
  claim.consumers.map(({ uuid, allocations }) => keyOf(allocations, mappings.get(uuid) ?? []));

/** All usage that a fleet shows. */
const usageOf = ({ byId }: Fleet) => [...byId.values()].map(({ inventories }) => inventories.map(({ used }) => used));

test('each member of a gang gets one of the first candidates that GET would give, with what the gang has free', () => {
  let placed = 0;
  let refused = 0;
  fc.assert(
    fc.property(anyCase, (made) => {
      const { rows, fleet, own, consumers, states, requests, keysByIndex } = prepare(made);
      const claim: Claim = { consumers, inventories: [], placing: consumers.map((_, index) => index) };
      const before = usageOf(fleet);
      let outcome: Placement | ClaimRefused;
      try {
        outcome = placeConsumers(fleet, claim, states, onCertainFleet);
      } catch (error) {
        if (!(error instanceof ClaimRefused)) throw error;
        outcome = error;
      }
      assert.deepEqual(usageOf(fleet), before, 'the fleet shows what is not there');
      const taken = new Map<string, number>();
      for (const [index, request] of requests.entries()) {
        const usage = withUsage(rows, (key) => (taken.get(key) ?? 0) - (own.get(key) ?? 0));
        const expected = expectedKeys(usage, withTolerance(usage, rows, own), request, keysByIndex[index] ?? []);
        if (outcome instanceof ClaimRefused) {
          // The places of the consumers before the refused one are unknown.
          const isFirst = outcome.message.includes('consumer 0:');
          assert.equal(expected.length === 0, isFirst, outcome.message);
          refused += 1;
          return;
        }
        const key = keysPlaced(outcome)[index] ?? '';
        assert.ok(expected.includes(key), `${key} is none of ${expected.join('\n')}`);
        placed += 1;
        for (const [uuid, amounts] of outcome.claim.consumers[index]?.allocations ?? []) {
          for (const [name, amount] of amounts) {
            const id = `${fleet.byUuid.get(uuid)?.id} ${fleet.classes.byName.get(name)?.id}`;
            taken.set(id, (taken.get(id) ?? 0) + amount);
          }
        }
      }
    }),
    { numRuns: 3000 },
  );
  assert.ok(placed > 500 && refused > 300, `${placed} placed, ${refused} refused`);
});

test('each claim of a batch gets one of the first candidates that GET would give beside the claims before it', () => {
  let placed = 0;
  let again = 0;
  let refusals = 0;
  fc.assert(
    fc.property(anyCase, (made) => {
      const { rows, fleet, own, consumers, states, requests, keysByIndex } = prepare(made);
      const batch = consumers.map((consumer): BatchedClaim => {
        const claim: Claim = { consumers: [consumer], inventories: [], placing: [0] };
        const fail = (error: unknown) => {
          throw error;
        };
        return { item: onFreshFleet(pending(claim)), resolve: fail, reject: fail, again: fail };
      });
      const before = usageOf(fleet);
      const judgedBatch = judgeBatch(fleet, batch, states);
      const { judged, refused } = judgedBatch;
      assert.deepEqual(usageOf(fleet), before, 'the fleet shows what is not there');
      const promised = new Map<string, number>();
      for (const [index, request] of requests.entries()) {
        const mine = index === 0 ? own : new Map<string, number>();
        const usage = withUsage(rows, (key) => (promised.get(key) ?? 0) - (mine.get(key) ?? 0));
        const expected = expectedKeys(usage, withTolerance(usage, rows, mine), request, keysByIndex[index] ?? []);
        const found = judged.find(({ entry }) => entry === batch[index]);
        if (found?.placement === undefined) {
          const isRefused = refused.some(({ entry }) => entry === batch[index]);
          assert.deepEqual(expected, []);
          // A claim is not refused while other claims may lose their promised amounts.
          assert.equal(isRefused, promised.size === 0);
          assert.equal(
            judgedBatch.again.some(({ entry }) => entry === batch[index]),
            promised.size > 0,
          );
          if (isRefused) refusals += 1;
          else again += 1;
          continue;
        }
        const [key = ''] = keysPlaced(found.placement);
        assert.ok(expected.includes(key), `${key} is none of ${expected.join('\n')}`);
        placed += 1;
        for (const { provider, classId, wanted, freed } of found.usageChanges) {
          const id = `${provider.id} ${classId}`;
          if (wanted > freed) promised.set(id, (promised.get(id) ?? 0) + wanted - freed);
        }
      }
    }),
    { numRuns: 3000 },
  );
  assert.ok(placed > 1000 && again > 100 && refusals > 300, `${placed} placed, ${again} put back, ${refusals} refused`);
});
