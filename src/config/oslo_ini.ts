import { lstrip, rstrip, strip } from '../text/strings.ts';
import { ConfigError } from './config.ts';

/** One assignment: the value after quotes are removed and lines are joined, and the line of its key, counted from 1. */
type IniValue = { readonly value: string; readonly line: number };

/**
 * Section -> option -> its values in the order of the file. Section names are in lower case, except DEFAULT, because
 * oslo.config ignores their case. Option names are as written.
 */
export type IniSections = ReadonlyMap<string, ReadonlyMap<string, readonly IniValue[]>>;

/** The name under which oslo.config looks up a section. */
export const normalizeSection = (name: string): string => (name === 'DEFAULT' ? name : name.toLowerCase());

/**
 * Reads a file as oslo.config does (its `iniparser.py` and `cfg.ConfigParser`):
 *
 * - `option = value` or `option: value`: the first separator counts; an option may be set several times;
 * - a line that starts with a blank or tab continues the value after a newline; an empty line, a comment or a section
 *   ends it;
 * - quotes are stripped if the first line of a value starts and ends with the same quote;
 * - `#` and `;` start a comment only at the start of a line; after a value they belong to the value.
 *
 * @param file the name of the file, for messages
 * @throws ConfigError with file and line. The text of the line is not shown, because it may be a secret.
 */
export function parseOsloIni(text: string, file: string): IniSections {
  const sections = new Map<string, Map<string, IniValue[]>>();
  let options: Map<string, IniValue[]> | undefined;
  let open: { readonly name: string; readonly line: number; readonly parts: string[] } | undefined;

  const close = (): void => {
    if (open === undefined || options === undefined) return;
    const value = { value: open.parts.join('\n'), line: open.line };
    const values = options.get(open.name);
    if (values === undefined) options.set(open.name, [value]);
    else values.push(value);
    open = undefined;
  };

  for (const [index, untrimmed] of text
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\r|\n/)
    .entries()) {
    const number = index + 1;
    const fail = (problem: string): ConfigError => new ConfigError([`${file}:${number}: ${problem}`]);
    const line = rstrip(untrimmed);
    if (line === '') {
      close();
    } else if (line.startsWith(' ') || line.startsWith('\t')) {
      if (open === undefined) {
        throw fail(
          'this line starts with white space, but there is no value above it to continue. Remove the white space.',
        );
      }
      open.parts.push(lstrip(line));
    } else if (line.startsWith('[')) {
      close();
      if (!line.endsWith(']')) throw fail('a section must end with "]", with nothing after it.');
      if (line === '[]') throw fail('the section has no name. Write [name].');
      const name = normalizeSection(line.slice(1, -1));
      options = sections.get(name) ?? new Map();
      sections.set(name, options);
    } else if (line.startsWith('#') || line.startsWith(';')) {
      close();
    } else {
      close();
      const separator = line.search(/[:=]/);
      if (separator === -1) throw fail('a line must be "option = value", but this one has neither "=" nor ":".');
      const name = strip(line.slice(0, separator));
      if (name === '') throw fail('there is no option before the separator. Write "option = value".');
      if (options === undefined)
        throw fail(`${name} stands before any section. Write [DEFAULT] or another section above it.`);
      open = { name, line: number, parts: [unquote(strip(line.slice(separator + 1)))] };
    }
  }
  close();
  return sections;
}

function unquote(value: string): string {
  const first = value.at(0);
  return (first === '"' || first === "'") && value.endsWith(first) ? value.slice(1, -1) : value;
}

// Python's string.Template with oslo.config's names. Names may hold dots: `$name.` refers to the name "name.".
const reference = /\$(?:(\$)|([_a-z][._a-z0-9]*)|\{([_a-z][._a-z0-9]*)\})/gi;

/**
 * Replaces `$option`, `${option}`, `$group.option` and `${group.option}`. `$$` and `\$` become a dollar sign. A name
 * that `lookup` does not know stays as written, so that a `$` in a password is kept.
 *
 * @param lookup gets `option` or `group.option`.
 */
export function substitute(text: string, lookup: (name: string) => string | undefined): string {
  return text
    .replaceAll('\\$', () => '$$')
    .replace(reference, (match, dollar: string | undefined, plain: string | undefined, braced: string | undefined) => {
      if (dollar !== undefined) return '$';
      const name = plain ?? braced;
      return (name === undefined ? undefined : lookup(name)) ?? match;
    });
}

/** Escapes a text so that `substitute` returns the original. It writes `\$`, because `$$` fails after a backslash. */
export const escapeDollars = (text: string): string => text.replaceAll('$', () => '\\$');
