/** The largest whole number that divides both; `a` if `b` is 0. */
export const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));
