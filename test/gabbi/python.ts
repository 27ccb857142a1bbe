import { isMap, type Value } from './parse.ts';

/*
 * gabbi is a Python program, and parts of its format depend on Python: how a list is written when a regular expression
 * is matched against it, and the syntax of regular expressions.
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

/** Converts a regular expression from the syntax of Python's `re`. Only named groups and anchors differ. */
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
