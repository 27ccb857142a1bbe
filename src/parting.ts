import { isTimedOut } from '../db/sqlstate.ts';

/** What waits for its turn, which it may have in a batch with others. */
export type Partable = {
  /** Whether it was in a batch that failed for the sake of one: it goes by itself then. */
  readonly alone: boolean;
  readonly reject: (error: unknown) => void;
};

/** Those of a batch that failed for the sake of one, as they are to wait for another turn. */
export const parted = <Waiting extends Partable>(batch: readonly Waiting[]): Waiting[] =>
  batch.map((waiting) => ({ ...waiting, alone: true }));

/**
 * What was parted from one that waited for a lock in vain, and needs the same lock, would wait in vain as long once more: it is
 * refused with it.
 *
 * @param error what that one failed by: nobody is refused for another reason than that it took too long
 * @returns those who go on waiting
 */
export function refuseWhoNeedsTheSame<Waiting extends Partable>(
  queue: readonly Waiting[],
  needsTheSame: (waiting: Waiting) => boolean,
  error: unknown,
): Waiting[] {
  const isRefused = (waiting: Waiting): boolean => isTimedOut(error) && waiting.alone && needsTheSame(waiting);
  for (const waiting of queue) if (isRefused(waiting)) waiting.reject(error);
  return queue.filter((waiting) => !isRefused(waiting));
}
