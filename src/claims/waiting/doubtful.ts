import type { LeavingClaim } from '../../../db/statements/claims/waiting.ts';
import { ApiError } from '../../request/errors.ts';
import { ClaimRefused } from '../claim.ts';
import type { Claims } from '../claims.ts';
import { noteCondition, type Waiter } from './waiter.ts';

/** How many claims are judged in each round. */
const judgedAtOnce = 10;

/** Waiting claims that must be judged: they were not judged before, or another request may have written their consumers since. */
export type DoubtfulClaims = {
  add(waiter: Waiter): void;
  /** Removes a claim, if it is there. */
  remove(waiter: Waiter): void;
  /** Judges some of these claims, by one statement: ends wrong claims, and finds what the other claims wait for. */
  judgeSome(): void;
};

/**
 * Starts without claims.
 *
 * @param onWrong called with a claim that can never be written, with its refusal, and with how it leaves
 */
export function openDoubtfulClaims(
  dryRun: Claims['dryRun'],
  onWrong: (waiter: Waiter, error: unknown, how: LeavingClaim['how']) => void,
): DoubtfulClaims {
  const doubtful = new Set<Waiter>();

  const judgeOne = async (waiter: Waiter): Promise<void> => {
    try {
      await dryRun(waiter.claim);
    } catch (error) {
      if (isJudgedElsewhere(waiter)) return;
      if (!(error instanceof ClaimRefused) && !(error instanceof ApiError)) {
        doubtful.add(waiter); // the database is unavailable
        return;
      }
      const reason = error instanceof ClaimRefused ? error.reason : undefined;
      if (reason === 'no candidates' || reason === 'limit') {
        // A claim in state `waiting` keeps its reason, which it has in common with the claims like it.
        if (waiter.state === 'in line') waiter.waitsFor = reason === 'limit' ? 'limit' : 'room';
        noteCondition(waiter, error);
      } else onWrong(waiter, error, reason === undefined ? 'left' : 'ended');
    }
  };

  return {
    add: (waiter) => {
      doubtful.add(waiter);
    },
    remove: (waiter) => {
      doubtful.delete(waiter);
    },
    judgeSome: () => {
      for (const waiter of [...doubtful.values().take(judgedAtOnce)]) {
        doubtful.delete(waiter);
        if (!isJudgedElsewhere(waiter)) void judgeOne(waiter);
      }
    },
  };
}

/** Whether a claim is under way or answered, or gets its row first. */
const isJudgedElsewhere = ({ state }: Waiter): boolean => state !== 'in line' && state !== 'waiting';
