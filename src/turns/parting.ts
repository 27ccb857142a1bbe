import { heldUpLimit } from './in_turn.ts';

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
 * @param error what that one failed by
 * @returns those who go on waiting
 */
export function refuseParted<Waiting extends Partable>(
  queue: readonly Waiting[],
  needsTheSame: (waiting: Waiting) => boolean,
  error: unknown,
): Waiting[] {
  const isRefused = (waiting: Waiting): boolean => waiting.alone && needsTheSame(waiting);
  for (const waiting of queue) if (isRefused(waiting)) waiting.reject(error);
  return queue.filter((waiting) => !isRefused(waiting));
}

/** Whether those who go alone are next, given how many are held up, and whether there is anybody of either kind who could go. */
export type IsAloneNext = (waits: {
  readonly heldUp: number;
  readonly alone: boolean;
  readonly others: boolean;
}) => boolean;

/**
 * Each who goes alone may be held up as the one before him was: while somebody is, they and the others take turns, so that
 * nobody waits for all of them; and none of them goes while as many are held up as may be.
 */
export function takingTurns(): IsAloneNext {
  let wasAlone = false;
  return ({ heldUp, alone, others }) => {
    wasAlone = alone && heldUp < heldUpLimit && !(wasAlone && heldUp > 0 && others);
    return wasAlone;
  };
}
