declare global {
  interface JSON {
    /** JSON text that stringify() copies as it is (ECMAScript's JSON.parse source text access, in Node.js since 21). */
    rawJSON(text: string): unknown;
  }
}

/**
 * A number that JSON.stringify writes with all its digits. Above 2^53 JavaScript writes only as many digits as tell
 * numbers apart, and then zeros; Python, and so clients of upstream, would read another integer.
 */
export const exactNumber = (value: number): unknown =>
  Number.isSafeInteger(value) || !Number.isInteger(value) ? value : JSON.rawJSON(BigInt(value).toString());
