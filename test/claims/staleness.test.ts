import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchForStaleness } from '../../src/claims/judge_batch.ts';
import { rowsOf } from '../candidates/topology.ts';
import { createFleet } from '../fleet/made_up_fleet.ts';

test('the fleet stays suspected after a refresh that has failed', async () => {
  let answers = false;
  const fresh = () =>
    answers
      ? Promise.resolve(createFleet(rowsOf([])).fleet)
      : Promise.reject(new Error('The database is unavailable.'));
  const staleness = watchForStaleness({ fresh, isInDoubt: () => false });
  staleness.suspect();
  await assert.rejects(staleness.bringUpToDate());
  assert.equal(staleness.isSuspected(), true);
  answers = true;
  await staleness.bringUpToDate();
  assert.equal(staleness.isSuspected(), false);
});
