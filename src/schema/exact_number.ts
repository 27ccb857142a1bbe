declare global {
  interface JSON {
    /** JSON text that stringify() copies as it is (ECMAScript's JSON.parse source text access, in Node.js since 21). */
    rawJSON(text: string): unknown;
  }
}

/**
 * A number for JSON.stringify with all its digits: beyond 2^53 JavaScript pads the shortest digits that tell numbers apart
 * with zeros, where Python, and so every client of upstream, sees another integer.
 */
export const exactNumber = (value: number): unknown =>
  Number.isSafeInteger(value) || !Number.isInteger(value) ? value : JSON.rawJSON(BigInt(value).toString());
