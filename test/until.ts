import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds, for at most 60 s, because a busy machine is slow. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 60_000; !(await holds()); await sleep(20)) {
    assert.ok(Date.now() < end, `not within 60 s: ${what}`);
  }
}
