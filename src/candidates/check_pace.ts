/** The number of steps without a candidate after which the first check is due. */
const stepsBeforeCheck = 32;

/**
 * Says when a search checks whether it is at a dead end. One check takes as long as many steps. So after each check
 * that finds no dead end, twice as many steps pass before the next one.
 */
export type CheckPace = {
  /** Counts a step that led to no candidate. @returns whether a check is due */
  step(): boolean;
  /** Takes note of a check. */
  checked(isDeadEnd: boolean): void;
  /** A candidate was found: the count begins anew. */
  startAnew(): void;
};

/** The pace of a search that begins. */
export function openCheckPace(): CheckPace {
  let steps = 0;
  let next = stepsBeforeCheck;
  let gap = 1;
  return {
    step: () => {
      steps += 1;
      return steps >= next;
    },
    checked: (isDeadEnd) => {
      gap = isDeadEnd ? 1 : gap * 2;
      next = steps + gap;
    },
    startAnew: () => {
      steps = 0;
      next = stepsBeforeCheck;
      gap = 1;
    },
  };
}
