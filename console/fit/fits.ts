import type { CandidateCount, Explanation, UnmetCondition } from '../../src/client/candidate_questions.ts';

/** In which trees a query fits, by the UUIDs of their roots. */
export type Fits = {
  /** How often the query fits in each tree alone, without trees in which it does not fit. */
  readonly times: ReadonlyMap<string, number>;
  /** The largest of these numbers. */
  readonly most: number;
  /** Trees that nearly fit, and the condition that keeps each from it. */
  readonly near: ReadonlyMap<string, UnmetCondition>;
  /** The unmet conditions of the trees that nearly fit. */
  readonly unmet: ReadonlyMap<string, readonly UnmetCondition[]>;
};

/** Whether a tree nearly fits: one condition is not met, and if it is an amount, at least half of it is left. */
export function isNear(unmet: readonly UnmetCondition[]): boolean {
  const [only, another] = unmet;
  if (only === undefined || another !== undefined) return false;
  return only.asked === null || 2 * (only.free ?? 0) >= only.asked;
}

/** Puts the answers to two questions about a query together. */
export function fitsOf({ trees }: Pick<CandidateCount, 'trees'>, nearest: Explanation['nearest']): Fits {
  const near = nearest.flatMap(({ root, unmet }) => {
    const [only] = unmet;
    return only !== undefined && isNear(unmet) ? [[root.uuid, only] as const] : [];
  });
  return {
    times: new Map(trees.map(({ uuid, count }) => [uuid, count])),
    most: trees.reduce((most, { count }) => Math.max(most, count), 0),
    near: new Map(near),
    unmet: new Map(nearest.map(({ root, unmet }) => [root.uuid, unmet])),
  };
}
