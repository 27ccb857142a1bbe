/** What the judgement of a waiting claim does if the claim is written or answered meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClaimRefused } from '../../src/claims/claim.ts';
import { openDoubtfulClaims } from '../../src/claims/waiting/doubtful.ts';
import type { Waiter } from '../../src/claims/waiting/waiter.ts';
import { newTestWaiter } from './new_waiter.ts';

test('a claim that is written or answered while it is judged is not ended, described or judged again by that', async () => {
  const tasks: PromiseWithResolvers<never>[] = [];
  const wrong: Waiter[] = [];
  const doubtful = openDoubtfulClaims(
    () => {
      const task = Promise.withResolvers<never>();
      tasks.push(task);
      return task.promise;
    },
    (waiter) => wrong.push(waiter),
  );
  const refusals = [
    new ClaimRefused('no candidates', 'no tree meets it'),
    new ClaimRefused('consumer generation', 'another request has made the consumer'),
    new Error('the database is unavailable'),
  ];
  for (const refusal of refusals) {
    for (const state of ['under way', 'settled', 'waiting'] as const) {
      const waiter = newTestWaiter('process', null);
      waiter.state = 'waiting';
      wrong.length = 0;
      tasks.length = 0;
      doubtful.add(waiter);
      doubtful.judgeSome();
      waiter.state = state;
      tasks[0]?.reject(refusal);
      await new Promise(setImmediate);
      const isLeftAlone = state !== 'waiting';
      const isWrong = refusal instanceof ClaimRefused && refusal.reason === 'consumer generation';
      assert.deepEqual(wrong, isLeftAlone || !isWrong ? [] : [waiter]);
      assert.equal(waiter.condition !== '', !isLeftAlone && refusal === refusals[0], waiter.condition);
      // Back in the queue of claims, it is judged again only if the judgement failed.
      waiter.state = 'waiting';
      doubtful.judgeSome();
      assert.equal(tasks.length, !isLeftAlone && refusal === refusals[2] ? 2 : 1);
      doubtful.remove(waiter);
    }
  }
});
