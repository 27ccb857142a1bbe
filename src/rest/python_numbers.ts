import { remembering } from '../text/cache.ts';

declare global {
  interface JSON {
    /** With the text of each number in the source (ECMAScript's JSON.parse source text access, in Node.js since 21). */
    parse(
      text: string,
      reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
  }
}

/*
 * Numbers in JSON as Python writes them. Otherwise a client that prints an answer would show `16` and not `16.0`, as with upstream.
 */

/** How many numbers are remembered as JSON text: allocation ratios are few. */
const maxRemembered = 1000;

const rawFloat = remembering((value: number): unknown => JSON.rawJSON(pythonFloat(value)), maxRemembered);

/** A floating-point number for JSON.stringify, which is written as Python writes it: with a decimal point, or an exponent. */
export const floatJson = (value: number): unknown => (Object.is(value, -0) ? JSON.rawJSON('-0.0') : rawFloat(value)); // to a Map it is 0

/** The text of a finite number as Python's repr writes it: the fewest digits that distinguish it from other numbers. */
export function pythonFloat(value: number): string {
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa = '', exponent = ''] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  /** The position of the decimal point, counted from before the first digit. */
  const point = Number(exponent) + 1;
  if (point <= -4 || point > 16) {
    const power = `${Math.abs(point - 1)}`.padStart(2, '0');
    return `${sign}${mantissa}e${point > 0 ? '+' : '-'}${power}`;
  }
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  if (digits.length <= point) return `${sign}${digits.padEnd(point, '0')}.0`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/**
 * Parses JSON text so that JSON.stringify writes each number as Python would: `16` is an integer, and `1.6e1` becomes `16.0`.
 *
 * @param text is valid JSON
 */
export const numbersAsWritten = (text: string): unknown =>
  JSON.parse(text, (_key, value, { source = '' }) =>
    typeof value === 'number'
      ? JSON.rawJSON(/[.e]/i.test(source) ? pythonFloat(value) : BigInt(source).toString())
      : value,
  );

declare global {
  interface JSON {
    /** JSON text that stringify() copies as it is (ECMAScript's JSON.parse source text access, in Node.js since 21). */
    rawJSON(text: string): unknown;
  }
}

/**
 * A number that JSON.stringify writes with all its digits. Above 2^53 JavaScript writes only as many digits as distinguish
 * numbers, and then zeros; Python, and so clients of upstream, would read another integer.
 */
export const exactNumber = (value: number): unknown =>
  Number.isSafeInteger(value) || !Number.isInteger(value) ? value : JSON.rawJSON(BigInt(value).toString());
