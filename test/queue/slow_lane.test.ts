/** Where transactions wait for locks that other programs hold. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockRefused, sqlstate } from '../../db/engine/failures.ts';
import { openSlowLane, slowConnections } from '../../db/engine/slow_lane.ts';
import { until } from '../support/until.ts';

const refused = (): Error =>
  Object.assign(new Error('refused'), { severity: 'ERROR', code: sqlstate.lockNotAvailable });

/** Transactions that are refused a lock until it is released, and what is seen of their attempts. */
function locked() {
  const seen = { attempts: 0, underWay: 0, mostAtOnce: 0, busyMs: 0, isReleased: false };
  const attempt = async ({ lockTimeoutMs }: { readonly lockTimeoutMs: number }): Promise<void> => {
    const startedMs = performance.now();
    seen.attempts += 1;
    seen.underWay += 1;
    seen.mostAtOnce = Math.max(seen.mostAtOnce, seen.underWay);
    if (!seen.isReleased) await sleep(lockTimeoutMs);
    seen.underWay -= 1;
    seen.busyMs += performance.now() - startedMs;
    if (!seen.isReleased) throw refused();
  };
  return { seen, attempt };
}

test('transactions that hold other locks while they wait run one at a time, with long pauses between', async () => {
  const { attempt } = openSlowLane();
  const { seen, attempt: transaction } = locked();
  const startedMs = performance.now();
  const waiting = Array.from({ length: 30 }, () => attempt(transaction, { holdsOthers: true, refusal: refused() }));
  await until('each was tried', () => seen.attempts > waiting.length);
  assert.equal(seen.mostAtOnce, 1);
  const share = seen.busyMs / (performance.now() - startedMs);
  assert.ok(share < 0.35, `${share} of the time`);

  // Once they get their locks, they need no rest.
  seen.isReleased = true;
  const releasedMs = performance.now();
  await Promise.all(waiting);
  // With rests they would take 6 s.
  assert.ok(performance.now() - releasedMs < 4_000);
});

test('a transaction leaves the queue at its time limit, however many are ahead of it', async () => {
  for (const holdsOthers of [true, false]) {
    const { attempt } = openSlowLane();
    const { seen, attempt: transaction } = locked();
    const others = Array.from({ length: 3_000 }, () => attempt(transaction, { holdsOthers, refusal: refused() }));
    const endsAtMs = performance.now() + 50;
    await assert.rejects(attempt(transaction, { holdsOthers, endsAtMs, refusal: refused() }), isLockRefused);
    assert.ok(seen.attempts < others.length, 'it is given up before all those ahead of it were tried');
    seen.isReleased = true;
    await Promise.all(others);
  }
});

test('a new transaction runs before transactions that were refused a lock, whether it holds other locks or not', async () => {
  for (const holdsOthers of [true, false]) {
    const { attempt } = openSlowLane();
    const { seen, attempt: transaction } = locked();
    const others = Array.from({ length: 10 }, () => attempt(transaction, { holdsOthers, refusal: refused() }));
    // New and retried transactions take turns, so that by then all of them have run.
    await until('each was tried', () => seen.attempts > 2 * others.length);
    const before = seen.attempts;
    await attempt(async () => {}, { holdsOthers, refusal: refused() });
    assert.ok(seen.attempts - before <= slowConnections, `${seen.attempts - before} others were tried before it`);
    seen.isReleased = true;
    await Promise.all(others);
  }
});

test('new transactions do not stop refused ones from being retried', async () => {
  const { attempt } = openSlowLane();
  const { seen, attempt: transaction } = locked();
  const old = locked();
  const waiting = [attempt(old.attempt, { holdsOthers: true, refusal: refused() })];
  await until('it was tried', () => old.seen.attempts === 1);
  waiting.push(...Array.from({ length: 10 }, () => attempt(transaction, { holdsOthers: true, refusal: refused() })));
  await until('it was tried again', () => old.seen.attempts === 2);
  assert.ok(seen.attempts < 3, `after ${seen.attempts} others`);
  seen.isReleased = true;
  old.seen.isReleased = true;
  await Promise.all(waiting);
});

test('a transaction that is no longer wanted is not repeated', async () => {
  const { attempt } = openSlowLane();
  const { seen, attempt: transaction } = locked();
  const unwanted = attempt(transaction, { holdsOthers: false, isWanted: () => false, refusal: refused() });
  await assert.rejects(unwanted, isLockRefused);
  assert.equal(seen.attempts, 1);
});
