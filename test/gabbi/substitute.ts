import { jsonPathValue } from './jsonpath.ts';
import { isMap, type Value } from './parse.ts';
import { escapeRegex, pythonText } from './python.ts';
import type { Response } from './send.ts';

/** The URL and response of a test, for later tests of the file. */
export type Past = { readonly url: string; readonly response: Response };

/** The data that `$...` in a test can refer to. */
export type Context = {
  readonly scheme: string;
  readonly netloc: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The previous test of the file, if it has run. */
  readonly prior: Past | undefined;
  /** All tests of the file that have run, by name. */
  readonly history: ReadonlyMap<string, Past>;
};

/**
 * Replaces `$SCHEME`, `$NETLOC`, `$ENVIRON[..]`, `$LOCATION`, `$COOKIE`, `$LAST_URL`, `$URL`, `$HEADERS[..]` and
 * `$RESPONSE[..]`, in this order, also in the values (not the keys) of mappings and lists. A text that consists only of
 * `$RESPONSE[..]` becomes the value itself. A text with `$ENVIRON` becomes a number, boolean or null if it looks like
 * one.
 *
 * @param inRegex the text is a regular expression, so inserted text is escaped
 * @throws Error if there is no such data
 */
export function substitute(value: Value, context: Context, inRegex = false): Value {
  if (Array.isArray(value)) return value.map((item: Value) => substitute(item, context, inRegex));
  if (isMap(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, substitute(item, context, inRegex)]));
  }
  if (typeof value !== 'string' || !value.includes('$')) return value;
  let replaced: Value = value;
  for (const [marker, replace] of replacers) {
    if (typeof replaced !== 'string' || !replaced.includes(marker)) continue;
    try {
      replaced = replace(replaced, context, inRegex ? escapeRegex : (text) => text);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${marker} in ${JSON.stringify(value)} cannot be replaced: ${reason}`, { cause: error });
    }
  }
  return replaced;
}

/** The same, with the result as text. */
export const substituteText = (text: string, context: Context, inRegex = false): string =>
  pythonText(substitute(text, context, inRegex));

type Replacer = (text: string, context: Context, quote: (text: string) => string) => Value;

const history = String.raw`(?:\$HISTORY\[(?<quote1>['"])(?<test>.+?)\k<quote1>\]\.)??`;
const simple = (name: string): RegExp => new RegExp(`${history}\\$${name}`, 'g');
const withArgument = (name: string): RegExp =>
  new RegExp(String.raw`${history}\$${name}(?::(?<cast>\w+))?\[(?<quote2>['"])(?<argument>.+?)\k<quote2>\]`, 'g');

type Groups = {
  readonly test?: string | undefined;
  readonly cast?: string | undefined;
  readonly argument?: string | undefined;
};

/** Replaces each match by the result of `find` for its groups. */
const replaceEach = (text: string, pattern: RegExp, find: (groups: Groups) => string): string =>
  text.replace(pattern, (...match) => find(match.at(-1) as Groups)); // with named groups the last argument is the groups

function past(context: Context, { test }: Groups): Past {
  if (test === undefined) {
    if (context.prior === undefined) throw new Error('there is no prior response');
    return context.prior;
  }
  const found = context.history.get(test);
  if (found === undefined) throw new Error(`there is no response of a test "${test}"`);
  return found;
}

function header(response: Response, name: string): string {
  const value = response.headers[name.toLowerCase()];
  if (value === undefined) throw new Error(`the response has no header ${name}`);
  return value;
}

const replaceEnvironment: Replacer = (text, { environment }, quote) => {
  let cast: string | undefined;
  const replaced = replaceEach(text, withArgument('ENVIRON'), (groups) => {
    cast = groups.cast;
    const value = environment[groups.argument ?? ''];
    if (value === undefined) throw new Error(`there is no ${groups.argument} in the environment`);
    return quote(value);
  });
  if (cast !== undefined) return castTo(cast, replaced);
  if (/^\s*[+-]?\d+\s*$/.test(replaced)) return Number(replaced);
  if (/^\s*[+-]?(\d+\.\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(replaced)) return Number(replaced);
  const constant = { false: false, true: true, null: null }[replaced.toLowerCase()];
  return constant === undefined ? replaced : constant;
};

const replaceResponse: Replacer = (text, context, quote) => {
  const find = (groups: Groups): Value => jsonPathValue(past(context, groups).response.json, groups.argument ?? '');
  const whole = new RegExp(`^${withArgument('RESPONSE').source}$`).exec(text);
  if (whole?.groups !== undefined && !whole.groups.argument?.includes('$RESPONSE')) {
    const found = find(whole.groups);
    return whole.groups.cast === undefined ? found : castTo(whole.groups.cast, found);
  }
  return replaceEach(text, withArgument('RESPONSE'), (groups) => quote(pythonText(find(groups))));
};

const replaceCookie: Replacer = (text, context, quote) =>
  replaceEach(text, simple('COOKIE'), (groups) => {
    const cookies = header(past(context, groups).response, 'set-cookie').split(/,(?=\s*[^;,=\s]+=)/);
    return quote(cookies.map((cookie) => cookie.split(';', 1).join('').trim()).join(','));
  });

const replacers: ReadonlyMap<string, Replacer> = new Map<string, Replacer>([
  ['$SCHEME', (text, { scheme }) => text.replaceAll('$SCHEME', () => scheme)],
  ['$NETLOC', (text, { netloc }, quote) => text.replaceAll('$NETLOC', () => quote(netloc))],
  ['$ENVIRON', replaceEnvironment],
  [
    '$LOCATION',
    (text, context, quote) =>
      replaceEach(text, simple('LOCATION'), (groups) => quote(header(past(context, groups).response, 'location'))),
  ],
  ['$COOKIE', replaceCookie],
  ['$LAST_URL', (text, context, quote) => text.replaceAll('$LAST_URL', () => quote(past(context, {}).url))],
  ['$URL', (text, context, quote) => replaceEach(text, simple('URL'), (groups) => quote(past(context, groups).url))],
  [
    '$HEADERS',
    (text, context, quote) =>
      replaceEach(text, withArgument('HEADERS'), (groups) =>
        quote(header(past(context, groups).response, groups.argument ?? '')),
      ),
  ],
  ['$RESPONSE', replaceResponse],
]);

function castTo(cast: string, value: Value): Value {
  const casts: Readonly<Record<string, (value: Value) => Value>> = {
    int: (given) => Math.trunc(Number(given)),
    float: Number,
    str: pythonText,
    bool: Boolean,
  };
  const convert = casts[cast];
  if (convert === undefined) throw new Error(`the cast "${cast}" is none of ${Object.keys(casts).join(', ')}`);
  return convert(value);
}
