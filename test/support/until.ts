import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds, for at most 60 s, because a busy machine is slow. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 60_000; !(await holds()); await sleep(20)) {
    assert.ok(Date.now() < end, `not within 60 s: ${what}`);
  }
}

/** Does something again and again until it succeeds. @returns false if it did not within this time */
export async function succeedsWithin(patienceMs: number, succeeds: () => Promise<boolean>): Promise<boolean> {
  for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(100)) {
    if (await succeeds()) return true;
  }
  return false;
}
