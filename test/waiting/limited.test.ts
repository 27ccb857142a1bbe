/** Whether claims that wait for a limit go before claims of their project that come later. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLimitedClaims } from '../../src/claims/waiting/limited.ts';
import { noLimits } from '../../src/placement/limits.ts';
import { groupOf, requestOf } from '../candidates/plain_request.ts';
import { claimByQueries } from '../support/claims.ts';
import { newTestWaiter } from './new_waiter.ts';

test('a claim goes before a later one until it is found to exceed the present limits, after the later one came', async () => {
  let limits = { ...noLimits };
  const limited = openLimitedClaims(() => limits);
  let room = 0;
  const check = () => limited.fitting(async (claims) => claims.map(() => room));
  const pass = () => new Promise((resolve) => setTimeout(resolve, 2));

  const earlier = newTestWaiter('process', null, 0);
  limited.add(earlier);
  await pass();
  assert.deepEqual(await check(), []);
  await pass();
  const later = newTestWaiter('process', null, 1);
  assert.equal(limited.hasUncheckedBefore(later), true, 'checked before the later one came');
  await pass();
  assert.deepEqual(await check(), []);
  assert.equal(limited.hasUncheckedBefore(later), false, 'it exceeds the limit');
  limits = { ...noLimits };
  assert.equal(limited.hasUncheckedBefore(later), true, 'the limits have changed');
  await check();
  assert.equal(limited.hasUncheckedBefore(later), false, 'it exceeds these limits as well');
  limits = { ...noLimits };
  room = 1;
  assert.deepEqual(await check(), [earlier]);
  assert.equal(limited.hasUncheckedBefore(later), true, 'it is about to be written');
  limited.remove(earlier);
  assert.equal(limited.hasUncheckedBefore(later), false);
});

test('without a limit that tells how many claims fit, all of one query are written, but of several queries only one', async () => {
  const [small, large] = [requestOf([groupOf('', { VCPU: 1 })]), requestOf([groupOf('', { VCPU: 2 })])];
  for (const [requests, count] of [
    [[small], 2],
    [[small, large], 1],
  ] as const) {
    const limited = openLimitedClaims(() => noLimits);
    const waiters = [0, 1].map((index) =>
      newTestWaiter('process', null, index, claimByQueries(`${index}`, ...requests)),
    );
    for (const waiter of waiters) limited.add(waiter);
    const fitting = await limited.fitting(async (claims) => claims.map(() => Number.POSITIVE_INFINITY));
    assert.deepEqual(fitting, waiters.slice(0, count));
    // The limit of one of the queries may still refuse it: then it is retried less often.
    assert.deepEqual(
      waiters.map(({ mustBeJudged }) => mustBeJudged),
      [requests.length > 1, false],
    );
  }
});
