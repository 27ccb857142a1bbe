import { badRequest, errorCodes } from './errors.ts';

/** The parameters of a query string, in order, repetitions included. */
export type Query = {
  readonly entries: readonly (readonly [name: string, value: string])[];
  /** The last value of a parameter: upstream takes it where it expects one value. */
  last(name: string): string | undefined;
  /** All values of a parameter, in order. */
  all(name: string): readonly string[];
};

/**
 * Parses the query string of a URL as form data: `+` is a space, a broken percent escape stays as it is, and a
 * semicolon separates parameters as `&` does, as in upstream's framework.
 *
 * @throws ApiError 400 where a name or value is not UTF-8 or holds a NUL, which texts in the database cannot hold.
 */
export function parseQuery(search: string): Query {
  const entries: (readonly [string, string])[] = [];
  for (const part of search.replace(/^\?/, '').split(/[&;]/)) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = equals === -1 ? part : part.slice(0, equals);
    const value = equals === -1 ? '' : part.slice(equals + 1);
    entries.push([decode(name), decode(value)]);
  }
  return queryOf(entries);
}

/** The query of some parameters, in order. */
export function queryOf(entries: Query['entries']): Query {
  // Indexed by name: a query may have thousands of groups, and for each of them four names are looked up.
  const byName = new Map<string, string[]>();
  for (const [name, value] of entries) {
    const values = byName.get(name);
    if (values === undefined) byName.set(name, [value]);
    else values.push(value);
  }
  return {
    entries,
    last: (name) => byName.get(name)?.at(-1),
    all: (name) => byName.get(name) ?? [],
  };
}

/** The value of a parameter, if it is there. @throws ApiError 400 where it is there several times */
export function onlyValue(query: Query, name: string): string | undefined {
  const [value, ...others] = query.all(name);
  if (others.length === 0) return value;
  throw badRequest(`Query parameter '${name}' may be specified only once.`, errorCodes.duplicateQueryKey);
}

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  const spaced = text.replaceAll('+', ' ').replaceAll(/%(?![0-9a-fA-F]{2})/g, '%25');
  let decoded: string;
  try {
    decoded = decodeURIComponent(spaced);
  } catch {
    throw badRequest(`Invalid query string parameters: '${text}' is not valid UTF-8.`);
  }
  if (decoded.includes('\0')) throw badRequest(`Invalid query string parameters: '${text}' contains a NUL character.`);
  return decoded;
}
