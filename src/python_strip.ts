/*
 * Python's str.strip(), which upstream reads values with. JavaScript's trim takes other characters for white space: it lacks some
 * control characters and has the byte order mark.
 */

const blank = '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const leading = new RegExp(`^${blank}+`);
// Without the look-behind a long run of blanks in the middle of a text would take time by the square.
const trailing = new RegExp(`(?<!${blank})${blank}+$`);

/** Python's str.lstrip(). */
export const lstrip = (text: string): string => text.replace(leading, '');
/** Python's str.rstrip(). */
export const rstrip = (text: string): string => text.replace(trailing, '');
/** Python's str.strip(). */
export const strip = (text: string): string => lstrip(rstrip(text));
