import type { AggregateFilter, Resources, TraitFilter } from '../placement/filters.ts';
import { placementService, since } from '../placement/microversions.ts';
import { spellingsAt } from '../placement/spellings.ts';
import { isUuidLike } from '../placement/uuid.ts';
import { isOwn } from '../placement/versions.ts';
import { ApiError, badRequest, errorCodes } from '../request/errors.ts';
import { strip } from '../text/strings.ts';

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
    const decodedName = decode(name);
    entries.push([decodedName, decode(value, `${decodedName}: `)]);
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

/** The parameters of which all values count: each narrows the answer further. */
const repeatable = /^(required|member_of|same_subtree)/;

/** @throws ApiError 400 naming a parameter that comes twice, and its values, unless all of them count */
export function requireUnrepeated(query: Query): void {
  for (const [name] of query.entries) {
    const values = query.all(name);
    if (values.length === 1 || repeatable.test(name)) continue;
    throw badRequest(
      `Query parameter '${name}' may be specified only once. Got: ${values.join(', ')}`,
      errorCodes.duplicateQueryKey,
    );
  }
}

/**
 * Refuses repeated parameters in the versions of this service. OpenStack's take the last value: of
 * `resources=PGPU:1&resources=MEMORY_MB:4096` the memory alone.
 */
export function refuseRepeats(query: Query, version: number): void {
  if (isOwn(placementService, version)) requireUnrepeated(query);
}

/** @param place which parameter has the text, for errors; upstream's texts do not name it */
function decode(text: string, place = ''): string {
  if (!/[%+]/.test(text)) return text;
  const spaced = text.replaceAll('+', ' ').replaceAll(/%(?![0-9a-fA-F]{2})/g, '%25');
  const wrongText = (problem: string): ApiError => {
    const what = 'Invalid query string parameters: ';
    return new ApiError(400, `${what}'${text}' ${problem}.`, { sentence: `${what}${place}'${text}' ${problem}.` });
  };
  let decoded: string;
  try {
    decoded = decodeURIComponent(spaced);
  } catch {
    throw wrongText('is not valid UTF-8');
  }
  if (decoded.includes('\0')) throw wrongText('contains a NUL character');
  return decoded;
}

/**
 * The amounts of `resources=VCPU:2,MEMORY_MB:1024`. Where a class is named twice, its last amount counts in OpenStack's versions.
 *
 * @param parameter which has the value; upstream's texts do not name a parameter with a suffix
 * @throws ApiError 400 naming the malformed part
 */
export function parseResources(value: string, version: number, parameter = 'resources'): Resources {
  const wrong = (text: string): ApiError =>
    new ApiError(400, text, { sentence: `Invalid query string parameters: '${parameter}': ${text}` });
  const form =
    'Badly formed resources parameter. Expected resources query string parameter in form: ' +
    '?resources=VCPU:2,MEMORY_MB:1024. Got: ';
  if (strip(value) === '') throw wrong(`${form}empty string.`);
  const resources = new Map<string, number>();
  for (const item of value.split(',')) {
    const parts = item.split(':');
    const [name, text] = parts;
    if (parts.length !== 2 || name === undefined || text === undefined) throw wrong(`${form}${item}.`);
    const amount = parseInteger(text);
    if (amount === undefined) {
      throw wrong(`Requested resource ${name} expected positive integer amount. Got: ${text}.`);
    }
    if (amount < 1) throw wrong(`Requested resource ${name} requires amount >= 1. Got: ${amount}.`);
    if (resources.has(name) && isOwn(placementService, version))
      throw wrong(`Requested resource ${name} may be named only once. Got: ${value}.`);
    resources.set(name, amount);
  }
  return resources;
}

/**
 * An integer as Python's int() reads it: a sign, underscores between digits, white space around, digits of any script.
 */
export function parseInteger(text: string): number | undefined {
  const plain = text.replaceAll(/\p{Nd}/gu, (digit) => String(digitValue(digit.codePointAt(0) ?? 0)));
  return /^[+-]?\d+(_\d+)*$/.test(strip(plain)) ? Number(strip(plain).replaceAll('_', '')) : undefined;
}

/** In Unicode each script has its ten digits in one row, and some rows follow each other without a gap. */
function digitValue(codePoint: number): number {
  if (codePoint < 0x80) return codePoint - 0x30;
  let first = codePoint;
  while (/\p{Nd}/u.test(String.fromCodePoint(first - 1))) first--;
  return (codePoint - first) % 10;
}

/**
 * The traits of all `required<suffix>=` parameters. Before 1.39 only the last one counts. Forbidden traits (`!`) exist
 * from 1.22, any of several (`in:`) from 1.39.
 *
 * @throws ApiError 400 naming the value and the form that is expected.
 */
export function parseRequired(query: Query, suffix: string, version: number): TraitFilter {
  const values = query.all(`required${suffix}`);
  const filters = (version >= since.anyTraits ? values : values.slice(-1)).map((value) =>
    parseTraits(value, {
      allowForbidden: version >= since.forbiddenTraits,
      allowAny: version >= since.anyTraits,
      parameter: `required${suffix}`,
    }),
  );
  return {
    required: filters.flatMap((filter) => filter.required),
    forbidden: [...new Set(filters.flatMap((filter) => filter.forbidden))],
  };
}

/** A wrong value of a parameter, which upstream's texts name without a suffix. @param named the parameter as they name it */
const wrongValue = (text: string, named: string, parameter: string): ApiError =>
  new ApiError(400, text, { sentence: text.replace(`'${named}'`, `'${parameter}'`) });

/** One value of `required=` or `root_required=`. @throws ApiError 400 */
export function parseTraits(
  value: string,
  {
    allowForbidden,
    allowAny,
    parameter,
  }: { readonly allowForbidden: boolean; readonly allowAny: boolean; readonly parameter: string },
): TraitFilter {
  const anyForm = 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC';
  const problem = (text: string) => wrongValue(`Invalid query string parameters: ${text}`, 'required', parameter);
  if (value.startsWith('in:')) {
    if (!allowAny) {
      throw new ApiError(
        400,
        `Invalid query string parameters: The format '${anyForm}' only supported since microversion 1.39. Got: ${value}`,
        {
          sentence: `Invalid query string parameters: '${parameter}' takes no in:, which is any of several traits. Got: ${value}`,
        },
      );
    }
    const names = value.slice(3).split(',').map(strip);
    if (names.includes('')) {
      throw problem(`Expected 'required' parameter value of the form: ${anyForm}. Got an empty trait in: ${value}`);
    }
    if (names.some((name) => name.startsWith('!'))) {
      throw problem(`The format '${anyForm}' does not support forbidden traits. Got: ${value}`);
    }
    return { required: [[...new Set(names)]], forbidden: [] };
  }
  const names = value.split(',').map(strip);
  // Several exclamation marks mean the same as one, as in upstream.
  const forbidden = names.filter((name) => name.startsWith('!')).map((name) => name.replace(/^!+/, ''));
  const form = allowForbidden ? 'HW_CPU_X86_VMX,!CUSTOM_MAGIC' : 'HW_CPU_X86_VMX,CUSTOM_MAGIC';
  if (names.includes('') || forbidden.includes('')) {
    throw problem(`Expected 'required' parameter value of the form: ${form}. Got an empty trait in: ${value}`);
  }
  if (forbidden.length > 0 && !allowForbidden) {
    throw problem(`Expected 'required' parameter value of the form: ${form}. Got: ${value}`);
  }
  return {
    required: names.filter((name) => !name.startsWith('!')).map((name) => [name]),
    forbidden: [...new Set(forbidden)],
  };
}

/**
 * The aggregates of all `member_of<suffix>=` parameters: one UUID, or `in:` and several, either with `!` from 1.32.
 * Several parameters are allowed from 1.24.
 *
 * @throws ApiError 400 naming the value.
 */
export function parseMemberOf(query: Query, suffix: string, version: number): AggregateFilter {
  const values = query.all(`member_of${suffix}`);
  if (values.length > 1 && version < since.severalMemberOf) {
    throw badRequest(`Multiple member_of${suffix} parameters are not supported`);
  }
  const required: (readonly string[])[] = [];
  const forbidden = new Set<string>();
  for (const value of values) {
    const uuids = aggregatesOf(value, `member_of${suffix}`).flatMap((uuid) => spellingsAt(version, uuid));
    if (!value.startsWith('!')) {
      required.push(uuids);
      continue;
    }
    if (version < since.forbiddenAggregates) {
      throw badRequest(`Forbidden member_of${suffix} parameters are not supported in the specified microversion`);
    }
    for (const uuid of uuids) forbidden.add(uuid);
  }
  return { required, forbidden: [...forbidden] };
}

/** The UUIDs of one value of `member_of=`, forbidden or not, as the client spells them. @throws ApiError 400 */
export function aggregatesOf(value: string, parameter: string): readonly string[] {
  const match = /^!?in:/.exec(value);
  if (value.includes(',') && match === null) {
    throw wrongValue(
      "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid " +
        `microversion. Got: ${value}`,
      'member_of',
      parameter,
    );
  }
  const uuids = match === null ? [value.replace(/^!/, '')] : value.slice(match[0].length).split(',');
  const wrong = uuids.find((uuid) => !isUuidLike(uuid));
  if (wrong !== undefined) {
    throw wrongValue(
      `Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: ${wrong}`,
      'member_of',
      parameter,
    );
  }
  return uuids;
}

/** The spellings under which the provider of `in_tree` is looked for. @throws ApiError 400 where the value is no UUID. */
export function parseInTree(value: string, parameter: string, version: number): readonly string[] {
  const uuid = strip(value);
  if (isUuidLike(uuid)) return spellingsAt(version, uuid);
  throw wrongValue(
    `Invalid query string parameters: Expected 'in_tree' parameter to be a format of uuid. Got: ${value}`,
    'in_tree',
    parameter,
  );
}
