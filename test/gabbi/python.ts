import type { Value } from './parse.ts';
import { isMap } from './parse.ts';

/*
 * gabbi is a Python program, and some of what its files say is only defined by Python: how a list looks when a regular
 * expression is matched against it, and how regular expressions are written.
 */

/** Python's `str(value)`. */
export const pythonText = (value: Value): string => (typeof value === 'string' ? value : pythonLiteral(value));

function pythonLiteral(value: Value): string {
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'string') return pythonQuoted(value);
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (isMap(value)) {
    const entries = Object.entries(value).map(([key, item]) => `${pythonQuoted(key)}: ${pythonLiteral(item)}`);
    return `{${entries.join(', ')}}`;
  }
  return String(value);
}

function pythonQuoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
  return quote + escaped.replaceAll(quote, `\\${quote}`) + quote;
}

/** A regular expression as Python's `re` writes it; its own syntax differs only for named groups and anchors. */
export function pythonRegex(pattern: string): RegExp {
  const translated = pattern
    .replaceAll('(?P<', '(?<')
    .replace(/\(\?P=(\w+)\)/g, '\\k<$1>')
    .replaceAll('\\A', '^')
    .replaceAll('\\Z', '$');
  return new RegExp(translated);
}

/** Python's `re.escape`. */
export const escapeRegex = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/#&~ -]/g, '\\$&');
