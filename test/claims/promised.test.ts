/** Claims of a batch that are judged beside claims which may still lose their guards. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Claim } from '../../src/claims/claim.ts';
import { judgeBatch } from '../../src/claims/judge_batch.ts';
import { type BatchedClaim, onFreshFleet, type PendingClaim, pending } from '../../src/claims/pending_claim.ts';
import { groupOf, requestOf } from '../candidates/plain_request.ts';
import { fleetOf, nodeAt, providerUuid, stockOf } from '../candidates/topology.ts';
import { claimByQueries, claimOn, consumerState } from '../support/claims.ts';

const [fast, slow] = [0, 1].map(providerUuid) as [string, string];

/** A fast host with room for `capacity`, and a slow one with room for many. */
const makeFleet = (capacity = 2) =>
  fleetOf([
    nodeAt(0, { stock: { VCPU: stockOf(capacity) }, traits: ['CUSTOM_FAST'] }),
    nodeAt(1, { stock: { VCPU: stockOf(20) } }),
  ]);

const plain = (uuid: string, amount: number): Claim => claimOn(fast, uuid, amount, { knownGeneration: null });

/** A claim of a fast host, or else of any. */
const byQueries = (uuid: string): Claim => {
  const traits = { required: [['CUSTOM_FAST']], forbidden: [] };
  return claimByQueries(uuid, requestOf([groupOf('', { VCPU: 2 }, { traits })]), requestOf([groupOf('', { VCPU: 2 })]));
};

const entryOf = (item: PendingClaim): BatchedClaim => {
  const fail = (error: unknown) => {
    throw error;
  };
  return { item, resolve: fail, reject: fail, again: fail };
};

const providersOf = ({ write }: ReturnType<typeof judgeBatch>['judged'][number]): readonly number[] =>
  write.providers.map(({ providerId }) => providerId);

test('a claim is placed by its first query if the claim before it, which took the last room for that query, is not written', () => {
  const fleet = makeFleet();
  for (const before of [byQueries('first'), plain('first', 2)]) {
    const batch = [before, byQueries('second')].map((claim) => entryOf(onFreshFleet(pending(claim))));
    const together = judgeBatch(fleet, batch, new Map());
    assert.deepEqual(together.judged.map(providersOf), [[1]]);
    assert.deepEqual(together.refused, []);
    // The first one loses a guard. What comes next for the second one is judged without it.
    const next = together.again.map(({ item }) => entryOf(item));
    const alone = judgeBatch(fleet, next, new Map());
    assert.deepEqual(alone.judged.map(providersOf), [[1]]);
    // And if it is written, the second query counts.
    const inventory = fleet.byUuid.get(fast)?.inventories[0];
    assert.ok(inventory);
    inventory.used += 2;
    const after = judgeBatch(fleet, next, new Map());
    assert.deepEqual(after.judged.map(providersOf), [[fleet.byUuid.get(slow)?.id]]);
    inventory.used -= 2;
  }
});

test('a claim that only fits without the claim before it is not refused while that claim may still fail', () => {
  const fleet = makeFleet();
  const batch = ['first', 'second'].map((uuid) => entryOf(onFreshFleet(pending(plain(uuid, 2)))));
  const together = judgeBatch(fleet, batch, new Map());
  assert.deepEqual(together.judged.map(providersOf), [[1]]);
  assert.deepEqual(together.refused, []);
  const next = together.again.map(({ item }) => entryOf(item));
  assert.deepEqual(
    next.map(({ item }) => item.claim.consumers.map(({ uuid }) => uuid)),
    [['second']],
  );
  assert.deepEqual(judgeBatch(fleet, next, new Map()).judged.map(providersOf), [[1]]);
  // A claim that does not fit by itself is refused at once where nothing is promised.
  const tooLarge = judgeBatch(fleet, [entryOf(onFreshFleet(pending(plain('third', 3))))], new Map());
  assert.equal(tooLarge.refused.length, 1);
});

test('only the added amount of a claim counts as used for the claims after it', () => {
  const fleet = makeFleet(4);
  const provider = fleet.byUuid.get(fast);
  const classId = fleet.classes.byName.get('VCPU')?.id;
  const inventory = provider?.inventories[0];
  assert.ok(provider && inventory && classId !== undefined);
  inventory.used = 1;
  const grown = claimOn(fast, 'first', 2, { knownGeneration: 3 });
  const state = consumerState('first', [{ id: 1, providerId: provider.id, classId, used: 1 }], { generation: 3 });
  for (const second of [plain('second', 2), byQueries('second')]) {
    const batch = [grown, second].map((claim) => entryOf(onFreshFleet(pending(claim))));
    const { judged } = judgeBatch(fleet, batch, new Map([['first', state]]));
    assert.deepEqual(judged.map(providersOf), [[provider.id], [provider.id]]);
  }
});

test('on a fleet that is not fresh a claim is not placed by its second query', () => {
  const fleet = makeFleet(1);
  const { judged, again, isFleetSuspected } = judgeBatch(fleet, [entryOf(pending(byQueries('first')))], new Map());
  assert.deepEqual([judged, isFleetSuspected], [[], true]);
  const fresh = judgeBatch(
    fleet,
    again.map(({ item }) => entryOf(item)),
    new Map(),
  );
  assert.deepEqual(fresh.judged.map(providersOf), [[fleet.byUuid.get(slow)?.id]]);
});
