import { briefWait, type LockWait } from '../../db/engine/slow_lane.ts';

/** The limit for each lock while many waits fail. */
const briefestWait: LockWait = { lockTimeoutMs: 5 };
/** The limits for suspected items. There may be many of them to try. */
const partWait: LockWait = { lockTimeoutMs: 2, firstLockTimeoutMs: 50 };

/** The share of each second that may be lost to waits for locks that fail. */
const lostShare = 0.1;

/**
 * Measures how much time batches lost to waits for locks that were refused. Lost time is forgotten gradually: a tenth of a
 * second in each second.
 */
export function measureLostTime() {
  let lostMs = 0;
  let countedAtMs = 0;
  const add = (addedMs: number): void => {
    const nowMs = performance.now();
    lostMs = Math.max(0, lostMs - lostShare * (nowMs - countedAtMs)) + addedMs;
    countedAtMs = nowMs;
  };
  /** Whether lately more time was lost than may be: batches must wait shorter. */
  const isTooMuch = (): boolean => {
    if (lostMs > 0) add(0);
    return lostMs > lostShare * 1_000;
  };
  return {
    add,
    /** How long the next batch may wait for each lock. */
    waitNow: (isSuspected: boolean): LockWait => (isSuspected ? partWait : isTooMuch() ? briefestWait : briefWait),
  };
}
