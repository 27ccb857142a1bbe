/*
 * Python's str.strip(), by which upstream reads values. JavaScript's trim has another set of white space: without some
 * control characters, and with the byte order mark.
 */

const blank = '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const leading = new RegExp(`^${blank}+`);
// Without the look-behind, the time for a long run of blanks inside a text would grow by its square.
const trailing = new RegExp(`(?<!${blank})${blank}+$`);

/** Python's str.lstrip(). */
export const lstrip = (text: string): string => text.replace(leading, '');
/** Python's str.rstrip(). */
export const rstrip = (text: string): string => text.replace(trailing, '');
/** Python's str.strip(). */
export const strip = (text: string): string => lstrip(rstrip(text));
