/** Which refusals are final, and which hold only while the consumers of the claim have what they had. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import { ClaimRefused, type RefusalReason } from '../../src/claims/claim.ts';
import { type BatchedClaim, pending } from '../../src/claims/pending_claim.ts';
import { confirmRefusals } from '../../src/claims/write_batch.ts';
import { claimOn, consumerState } from '../support/claims.ts';

const stateOf = (used: number, generation = 1): ReadonlyMap<string, ConsumerState> =>
  new Map([['c', consumerState('c', [{ id: 1, providerId: 1, classId: 0, used }], { generation })]]);

/** @returns how a claim that was refused for this reason ends, if its consumer has `now` in the second reading */
async function endOf(reason: RefusalReason, now: ReadonlyMap<string, ConsumerState>): Promise<'refused' | 'again'> {
  const rejections: unknown[] = [];
  const fail = () => assert.fail('It is neither written nor put back here.');
  const item = pending(claimOn('p', 'c', 1));
  const entry: BatchedClaim = { item, resolve: fail, again: fail, reject: (error) => rejections.push(error) };
  const refusal = new ClaimRefused(reason, 'refused');
  const changed = await confirmRefusals([{ entry, refusal }], stateOf(1), async () => now);
  assert.deepEqual([rejections.length, changed.length].toSorted(), [0, 1]);
  return changed.length === 1 ? 'again' : 'refused';
}

const byUsage: readonly RefusalReason[] = ['invalid inventory', 'inventory in use', 'no candidates'];
const byItself: readonly RefusalReason[] = ['consumer generation', 'unknown provider', 'query too wide'];

test('a refusal by usage is final only if a second read finds the same allocations of the consumers', async () => {
  for (const reason of byUsage) {
    assert.equal(await endOf(reason, stateOf(1)), 'refused', reason);
    for (const now of [stateOf(2), stateOf(1, 2), new Map<string, ConsumerState>()]) {
      assert.equal(await endOf(reason, now), 'again', reason);
    }
  }
});

test('any other refusal is final', async () => {
  for (const reason of byItself) assert.equal(await endOf(reason, stateOf(2)), 'refused', reason);
});
