/** How many looks at choices a caller of the search grants it, over several anchors and requests. */
export type Work = { looks: number };

/** Takes looks off what is left. @returns whether more was taken than there was: the search did not see all it had to */
export function isSpent(work: Work, looks: number): boolean {
  work.looks -= looks;
  return work.looks < 0;
}
