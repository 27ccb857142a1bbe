import { concurrentlyUpdated } from '../rest/errors.ts';
import { ClaimRefused } from './claim.ts';
import type { BatchedClaim, PendingClaim } from './pending_claim.ts';

/** How claims are repeated that lost a race. */
export type LostRaceOptions = {
  /** How often a claim that lost a race is judged again before it is refused. */
  readonly conflictRetryCount: number;
  /** Called for each repetition. */
  readonly onRetry?: () => void;
};

/**
 * Puts a claim back to be judged again, because another request has changed what it was judged by; refuses it if it has
 * lost too often.
 *
 * @param item the claim in the form that replaces it
 * @param prepare what it waits for before it is judged again
 */
export function judgeAgain(
  entry: BatchedClaim,
  item: PendingClaim,
  { conflictRetryCount, onRetry }: LostRaceOptions,
  prepare?: () => Promise<unknown>,
): void {
  if (item.lostRaces >= conflictRetryCount) {
    entry.reject(new ClaimRefused('concurrent update', concurrentlyUpdated));
    return;
  }
  onRetry?.();
  entry.again({ ...item, lostRaces: item.lostRaces + 1 }, prepare?.());
}
