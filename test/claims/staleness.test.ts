import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchForStaleness } from '../../src/claims/judge_batch.ts';
import { fleetOf } from '../candidates/topology.ts';

test('the fleet stays suspected after a refresh that has failed', async () => {
  let answers = false;
  const fresh = () =>
    answers ? Promise.resolve(fleetOf([])) : Promise.reject(new Error('The database is unavailable.'));
  const staleness = watchForStaleness({ fresh, isInDoubt: () => false });
  staleness.suspect();
  await assert.rejects(staleness.bringUpToDate());
  assert.equal(staleness.isSuspected(), true);
  answers = true;
  await staleness.bringUpToDate();
  assert.equal(staleness.isSuspected(), false);
});
