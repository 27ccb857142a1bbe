import * as v from 'valibot';
import { isUuidLike } from '../placement/uuid.ts';
import { isStorable } from '../text/strings.ts';
import { failed, pythonRepr, unexpectedKeys } from './schema_complaint.ts';

/**
 * The elements of request schemas. They are valibot schemas with the messages of upstream's JSON Schema library, since
 * clients and tests match on those.
 */

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const wrongType = (...names: readonly string[]) =>
  failed('type', (value) => `${value} is not of type ${names.map((name) => `'${name}'`).join(', ')}`);

type SchemaLimits = {
  readonly minimum?: number;
  readonly maximum?: number;
  /** The unit, for fields that OpenStack does not have: a value such as '10m' is refused with the unit that it lacks. */
  readonly unit?: string;
};

/** An integer; 10.0 is one, true is not. */
export const integer = (limits: SchemaLimits = {}) =>
  integerOf(
    limits,
    limits.unit === undefined
      ? wrongType('integer')
      : failed('type', (value) => `${value} is not a whole number of ${limits.unit}`),
  );

/** An integer, or null. */
export const integerOrNull = (limits: SchemaLimits = {}) => v.nullable(integerOf(limits, wrongType('integer', 'null')));

function integerOf(
  { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY }: SchemaLimits,
  wrong: ReturnType<typeof wrongType>,
) {
  return v.pipe(
    v.number(wrong),
    v.check((value) => Number.isInteger(value), wrong),
    v.minValue(
      minimum,
      failed('minimum', (value) => `${value} is less than the minimum of ${minimum}`),
    ),
    v.maxValue(
      maximum,
      failed('maximum', (value) => `${value} is greater than the maximum of ${maximum}`),
    ),
  );
}

/** True or false. */
export const boolean = () => v.boolean(wrongType('boolean'));

/** Any number up to a maximum. */
export const number = (limits: { readonly maximum: number }) =>
  v.pipe(
    v.number(wrongType('number')),
    v.maxValue(
      limits.maximum,
      failed('maximum', (value) => `${value} is greater than the maximum of ${limits.maximum}`),
    ),
  );

type TextLimits = {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: RegExp;
  /** What a text has that does not match the pattern, for fields that OpenStack does not have: they are also refused with their limits. */
  readonly mismatch?: string;
};

/** A text that the database can hold; lengths count code points. */
export function text(limits: TextLimits = {}) {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern = /(?:)/, mismatch } = limits;
  const plainly = mismatch !== undefined;
  return v.pipe(
    v.string(wrongType('string')),
    v.regex(
      pattern,
      failed('pattern', (value) => (plainly ? `${value} ${mismatch}` : `${value} does not match '${pattern.source}'`)),
    ),
    v.check(
      (value) => hasCodePoints(value, minLength),
      failed('minLength', (value) => `${value} is too short${plainly ? `: it must have ${minLength} or more` : ''}`),
    ),
    v.check(
      (value) => !hasCodePoints(value, maxLength + 1),
      failed('maxLength', (value) => `${value} is too long${plainly ? `: it may have ${maxLength} characters` : ''}`),
    ),
    v.check(
      isStorable,
      failed('pattern', (value) => `${value} contains a NUL or a lone surrogate`),
    ),
  );
}

/** Whether a text has at least this number of code points. They are counted only if the length in UTF-16 does not decide. */
const hasCodePoints = (value: string, least: number): boolean =>
  value.length >= least && (value.length >= 2 * least || [...value].length >= least);

/** A time with its zone, such as 2026-11-22T23:00:00Z, as a Date. */
export const time = v.pipe(
  v.string(wrongType('string')),
  v.check(
    (value) => timePattern.test(value),
    failed('format', (value) => `${value} is no time with a zone, such as 2026-11-22T23:00:00Z; in a query + is %2B`),
  ),
  v.check(
    isTime,
    failed('format', (value) => `${value} has a day, a time of day or a zone that does not exist`),
  ),
  v.transform((value) => new Date(value)),
);

const timePattern = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** Date.parse takes 30 February for 2 March. */
function isTime(text: string): boolean {
  const day = timePattern.exec(text)?.[1];
  if (day === undefined || Number.isNaN(Date.parse(text))) return false;
  return !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
}

const noUuid = failed('format', (value) => `${value} is not a 'uuid'`);

/** A UUID in any spelling; see isUuidLike. */
export const uuidText = v.pipe(
  v.string(wrongType('string')),
  v.check((value) => isUuidLike(value), noUuid),
);

/** A UUID with its dashes: upstream's library checks queries so, and bodies as `uuidText`. */
export const dashedUuidText = v.pipe(
  uuidText,
  v.check((value) => [8, 13, 18, 23].every((index) => value[index] === '-'), noUuid),
);

/** The parts of a schema of an object or an array, by which a long value is checked in pieces. */
export type Parts =
  | { readonly kind: 'object'; readonly entries: v.ObjectEntries }
  | {
      readonly kind: 'keyed';
      /** The schema for some of the members: a limit of their number has no meaning there. */
      readonly some: v.GenericSchema;
      /** The schema for their keys alone. */
      readonly keys: v.GenericSchema;
      readonly schemaOf: (key: string) => v.GenericSchema;
      /** Keys that no member may have. */
      readonly refused: readonly string[];
    }
  | { readonly kind: 'list'; readonly item: v.GenericSchema; readonly unique: boolean };

const parts = new WeakMap<object, Parts>();

/** The parts of a schema that `object`, `keyed`, `partlyKeyed` or `list` has made; undefined for another one. */
export const partsOf = (schema: v.GenericSchema): Parts | undefined => parts.get(schema);

function withParts<Schema extends v.GenericSchema>(schema: Schema, its: Parts): Schema {
  parts.set(schema, its);
  return schema;
}

/** An object with just these keys; optional ones are marked with valibot's `optional`. */
export const object = <Entries extends v.ObjectEntries>(entries: Entries) =>
  withParts(
    v.pipe(
      v.custom<Record<string, unknown>>(isObject, wrongType('object')),
      // Valibot reports the first unexpected key only.
      v.strictObject(entries, ({ path }) => {
        const keys = Object.keys(Object(path?.at(-1)?.input)).filter((key) => !Object.hasOwn(entries, key));
        return unexpectedKeys(keys);
      }),
    ),
    { kind: 'object', entries },
  );

type MemberLimits = { readonly minProperties?: number };

/** An object whose keys match one of some patterns. */
export const keyed = <Value extends v.GenericSchema>(
  patterns: RegExp | readonly RegExp[],
  value: Value,
  limits: MemberLimits = {},
) => {
  const some = members(patterns, value, {});
  const keys = members(patterns, v.unknown(), {});
  return withParts(members(patterns, value, limits), {
    kind: 'keyed',
    some,
    keys,
    schemaOf: () => value,
    refused: refusedKeys,
  });
};

/** Valibot's record would drop these keys without an error. */
const refusedKeys = ['__proto__', 'constructor', 'prototype'];

function members<Value extends v.GenericSchema>(
  patterns: RegExp | readonly RegExp[],
  value: Value,
  { minProperties = 0 }: MemberLimits,
) {
  const each = patterns instanceof RegExp ? [patterns] : patterns;
  const message = each.map(({ source }) => pythonRepr(source)).join(', ');
  const key = v.check<string, string>((name) => each.some((pattern) => pattern.test(name)), message);
  return v.pipe(
    v.custom<Record<string, unknown>>(isObject, wrongType('object')),
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return;
      const input = dataset.value;
      for (const name of refusedKeys) {
        if (!Object.hasOwn(input, name)) continue;
        addIssue({ message, path: [{ type: 'object', origin: 'key', input, key: name, value: input[name] }] });
      }
    }),
    v.record(v.pipe(v.string(), key), value),
    v.check((record) => Object.keys(record).length >= minProperties, tooFew),
  );
}

/** An object in which only the values of keys that match a pattern are checked; other keys may have any value. */
export const partlyKeyed = <Value extends v.GenericSchema>(pattern: RegExp, value: Value, limits: MemberLimits = {}) =>
  withParts(partOfMembers(pattern, value, limits), {
    kind: 'keyed',
    some: partOfMembers(pattern, value, {}),
    keys: v.unknown(),
    schemaOf: (key) => (pattern.test(key) ? value : v.unknown()),
    refused: [],
  });

const partOfMembers = <Value extends v.GenericSchema>(
  pattern: RegExp,
  value: Value,
  { minProperties = 0 }: MemberLimits,
) =>
  v.pipe(
    v.custom<Record<string, unknown>>(isObject, wrongType('object')),
    v.check((record) => Object.keys(record).length >= minProperties, tooFew),
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return;
      for (const [name, item] of Object.entries(dataset.value)) {
        const issues = pattern.test(name) ? (v.safeParse(value, item).issues ?? []) : [];
        const step = { type: 'object', origin: 'value', input: dataset.value, key: name, value: item } as const;
        for (const { input, message, path = [] } of issues) addIssue({ input, message, path: [step, ...path] });
      }
    }),
  );

const tooFew = failed('minProperties', (value) => `${value} does not have enough properties`);

/** An array of items; with `unique`, no item may be there twice. */
export const list = <Item extends v.GenericSchema>(
  item: Item,
  limits: { readonly minItems?: number; readonly maxItems?: number; readonly unique?: boolean } = {},
) =>
  withParts(
    v.pipe(
      v.array(item, wrongType('array')),
      v.check(
        (items) => items.length >= (limits.minItems ?? 0),
        failed('minItems', (value) => `${value} is too short`),
      ),
      v.check(
        (items) => items.length <= (limits.maxItems ?? Number.POSITIVE_INFINITY),
        failed('maxItems', () => `there are more than ${limits.maxItems}`),
      ),
      v.check(
        (items) => !limits.unique || new Set(items.map((entry) => pythonRepr(entry))).size === items.length,
        notUnique,
      ),
    ),
    { kind: 'list', item, unique: limits.unique ?? false },
  );

/** The message for a list in which an item is there twice. */
export const notUnique = failed('uniqueItems', (value) => `${value} has non-unique elements`);

/** A value of the first form if it is an object with the field, else of the second form. */
export const either = <First extends v.GenericSchema, Second extends v.GenericSchema>(
  field: string,
  first: First,
  second: Second,
) => {
  const choice = v.lazy((value): First | Second => (isObject(value) && Object.hasOwn(value, field) ? first : second));
  // As valibot's unions have them, so that both forms can be seen in the schema.
  return Object.assign(choice, { options: [first, second] });
};

/** One of some texts. */
export const oneOf = (values: readonly string[]) =>
  v.picklist(
    values,
    failed('enum', (value) => `${value} is not one of [${values.map(pythonRepr).join(', ')}]`),
  );
