import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until something holds, for 20 s at most: a machine with much to do is slow. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; !(await holds()); await sleep(20)) {
    assert.ok(Date.now() < end, `not within 20 s: ${what}`);
  }
}
