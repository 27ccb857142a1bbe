import type { Turns } from '../rest/pieces.ts';

/**
 * The budget that a caller grants to searches at several anchors and for several requests: the number of looks that are
 * left. A look is one choice or provider that is examined, and takes some 50 ns: 35 to 130 by the kind of query.
 */
export type Work = { looks: number };

/** What limits a search: the budget of the caller, and the turns after which it pauses. Without them it goes on to its end. */
export type Limits = { readonly work?: Work | undefined; readonly turns?: Turns | undefined };

/**
 * Takes looks from the budget, if there is one.
 *
 * @returns whether it is used up: then the search has not seen all it had to see
 */
export function overspends(work: Work | undefined, looks: number): boolean {
  if (work === undefined) return false;
  work.looks -= looks;
  return work.looks < 0;
}
