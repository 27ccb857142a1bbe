import * as v from 'valibot';
import { atOnce, type Pieces } from '../request/turns.ts';
import { notUnique, object, type Parts, partsOf } from './json_schema.ts';
import { pythonRepr } from './schema_complaint.ts';

/** A JSON value that was parsed in pieces. */
export type LongJson = {
  readonly value: unknown;
  /** The objects and arrays in it with so many values that they must be worked on in pieces as well. */
  readonly long: ReadonlySet<unknown>;
};

/** How many values, at any depth, an object or an array has that counts as long. */
const longValues = 200;

/** No body of any API is nested deeper than ten levels. */
const maxDepth = 100;

/** More than any body of the length that is allowed by default needs, and few enough to be read within a second or so. */
const maxValues = 1_000_000;
const maxMembers = 100_000;

/** How much of a key an error shows. */
const longestKey = 200;

/** How many values are parsed in one piece. */
const pieceValues = 500;

type Container = {
  readonly into: unknown[] | Record<string, unknown>;
  /** How many values were parsed before it. */
  readonly before: number;
  /** The key of the next value of an object. */
  key: string;
  members: number;
};

/**
 * Parses JSON as JSON.parse does, but in pieces, and with limits: depth, values, and members of one object.
 *
 * @param options.longFrom how many values an object or an array has that counts as long
 * @param options.uniqueKeys whether an object with a key twice is a mistake; otherwise the last value counts, as with JSON.parse
 * @throws Error with the mistake and its position
 */
export function* parseLongJson(text: string, { longFrom = longValues, uniqueKeys = false } = {}): Pieces<LongJson> {
  const reader = openReader(text);
  const long = new Set<unknown>();
  const open: Container[] = [];
  let values = 0;
  for (;;) {
    let value = reader.value();
    values += 1;
    if (values > maxValues) throw new Error(`the body has more than ${maxValues} values.`);
    if (values % pieceValues === 0) yield;
    if (value === '[' || value === '{') {
      if (open.length === maxDepth) throw new Error(`the body is nested deeper than ${maxDepth} levels.`);
      const into = value === '[' ? [] : {};
      if (!reader.skip(value === '[' ? ']' : '}')) {
        open.push({ into, before: values, key: value === '[' ? '' : reader.key(), members: 0 });
        continue;
      }
      value = { of: into };
    }
    // The value is complete. It may be the last one of the objects and arrays around it.
    let complete = value.of;
    for (;;) {
      const around = open.at(-1);
      if (around === undefined) {
        reader.end();
        return { value: complete, long };
      }
      if (uniqueKeys && !Array.isArray(around.into) && Object.hasOwn(around.into, around.key))
        throw new Error(`${JSON.stringify(around.key.slice(0, longestKey))} stands twice in the same object.`);
      add(around, complete);
      const isList = Array.isArray(around.into);
      if (reader.skip(',')) {
        if (!isList) around.key = reader.key();
        break;
      }
      reader.expect(isList ? ']' : '}');
      if (values - around.before >= longFrom) long.add(around.into);
      complete = around.into;
      open.pop();
    }
  }
}

/**
 * Parses a short JSON text as JSON.parse does, but refuses an object with a key twice, and one that is nested too deeply. Most texts
 * have exactly as many keys as the value that JSON.parse makes of them, which is faster than to parse them in pieces.
 *
 * @throws Error with the mistake
 */
export function parseUniqueKeys(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const keys = text.match(/"\s*:/g)?.length ?? 0; // a text in it may have what looks like one, too
  return keys === keyCount(value) ? value : atOnce(parseLongJson(text, { uniqueKeys: true })).value;
}

/** NaN for a value that is nested too deeply: that equals no number, so that the parser in pieces says what is wrong. */
function keyCount(value: unknown, depth = 0): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (depth === maxDepth) return Number.NaN;
  const members = Object.values(value);
  const own = Array.isArray(value) ? 0 : members.length;
  return members.reduce((sum, member) => sum + keyCount(member, depth + 1), own);
}

function add(around: Container, value: unknown): void {
  const { into, key } = around;
  if (Array.isArray(into)) {
    into.push(value);
    return;
  }
  around.members += 1;
  if (around.members > maxMembers) throw new Error(`an object of the body has more than ${maxMembers} members.`);
  // Assigned, it would set the prototype.
  if (key === '__proto__')
    Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true });
  else into[key] = value;
}

/** A value that has no parts, or the beginning of one that has. */
type JsonToken = '[' | '{' | { readonly of: unknown };

/** Reads the tokens of a JSON text from its beginning. */
function openReader(text: string) {
  let at = 0;
  /** The positions of the next backslash and quote. Each is searched from its last position, so that the text is read once. */
  let backslash = positionOf('\\', 0);
  let quote = positionOf('"', 0);
  function positionOf(character: string, from: number): number {
    const position = text.indexOf(character, from);
    return position === -1 ? Number.POSITIVE_INFINITY : position;
  }
  const unexpected = (): Error =>
    new Error(
      at >= text.length
        ? 'unexpected end of the body.'
        : `unexpected character ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))} at position ${at}.`,
    );
  const skipSpace = (): void => {
    for (;;) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      at += 1;
    }
  };
  /** Parses the text up to a position as one value. */
  const parseUpTo = (end: number): unknown => {
    try {
      const value: unknown = JSON.parse(text.slice(at, end));
      at = end;
      return value;
    } catch {
      throw unexpected();
    }
  };
  const endOfString = (): number => {
    for (let from = at + 1; ; ) {
      if (backslash < from) backslash = positionOf('\\', from);
      if (quote < from) quote = positionOf('"', from);
      if (quote < backslash) return quote + 1;
      if (backslash === Number.POSITIVE_INFINITY) return text.length;
      from = backslash + 2;
    }
  };
  const skip = (character: string): boolean => {
    skipSpace();
    if (text[at] !== character) return false;
    at += 1;
    return true;
  };
  const expect = (character: string): void => {
    if (!skip(character)) throw unexpected();
  };
  const word = /[-+.\w]+/y;
  return {
    skip,
    expect,
    key: (): string => {
      skipSpace();
      if (text[at] !== '"') throw unexpected();
      const key = String(parseUpTo(endOfString()));
      expect(':');
      return key;
    },
    value: (): JsonToken => {
      skipSpace();
      const first = text[at];
      if (first === '[' || first === '{') {
        at += 1;
        return first;
      }
      if (first === '"') return { of: parseUpTo(endOfString()) };
      word.lastIndex = at;
      if (!word.test(text)) throw unexpected();
      return { of: parseUpTo(word.lastIndex) };
    },
    end: (): void => {
      skipSpace();
      if (at < text.length) throw unexpected();
    },
  };
}

type BodyIssue = v.BaseIssue<unknown>;
type Long = LongJson['long'];
type ObjectMembers = Readonly<Record<string, unknown>>;

/** The output of a schema for a value, and the issues. If there are issues, the output may be anything. */
type Checked = { readonly output: unknown; readonly issues: readonly BodyIssue[] };

/** After this number of issues the check stops: each takes time, and only one is reported. */
const enoughIssues = 1000;

/** How many members or items that are not long themselves are checked in one piece. */
const pieceMembers = 10;

/** How many items of a list are compared with all other items in one piece. */
const pieceItems = 1000;

/** Checks a JSON value as valibot does, but long objects and arrays in pieces. */
export function* checkInPieces(schema: v.GenericSchema, value: unknown, long: Long): Pieces<Checked> {
  const inner = withoutNull(schema);
  const parts = partsOf(inner);
  yield;
  if (!long.has(value) || parts === undefined) return checkAtOnce(schema, value);
  if (parts.kind === 'list')
    return Array.isArray(value) ? yield* checkList(value, parts, long) : checkAtOnce(inner, value);
  if (!isMembers(value)) return checkAtOnce(inner, value);
  return yield* parts.kind === 'object' ? checkObject(value, parts.entries, long) : checkMembers(value, parts, long);
}

const isMembers = (value: unknown): value is ObjectMembers =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The schema of a value without valibot's optional and nullable around it. */
function withoutNull(schema: v.GenericSchema): v.GenericSchema {
  const { wrapped } = schema as { readonly wrapped?: v.GenericSchema }; // valibot's optional and nullable have it
  return wrapped ?? schema;
}

/** Checks a value in one piece. `typed`: all types are right; a text that does not match its pattern has the right type. */
function checkAtOnce(schema: v.GenericSchema, value: unknown): Checked & { readonly typed: boolean } {
  const { output, issues = [], typed } = v.safeParse(schema, value);
  return { output, issues, typed };
}

/** An object with certain keys. Its long members are checked for themselves, and the rest without them. */
function* checkObject(members: ObjectMembers, entries: v.ObjectEntries, long: Long): Pieces<Checked> {
  const longOnes = Object.entries(entries).filter(([key]) => Object.hasOwn(members, key) && long.has(members[key]));
  const unchecked = Object.fromEntries(longOnes.map(([key]) => [key, v.unknown()]));
  const rest = checkAtOnce(object({ ...entries, ...unchecked }), members);
  const issues = [...rest.issues];
  const output = { ...Object(rest.output) };
  for (const [key, entry] of longOnes) {
    // The cast is right: each entry is a schema, since schemas of request bodies have no default values.
    const checked = yield* checkInPieces(entry as v.GenericSchema, members[key], long);
    issues.push(...issuesIn(members, key, checked.issues));
    output[key] = checked.output;
  }
  // In the order of the entries, as valibot has them: of equal ones the first is reported.
  const keys = Object.keys(entries);
  const indexOf = ({ path }: BodyIssue): number => {
    const index = keys.indexOf(String(path?.[0]?.key));
    return index === -1 ? keys.length : index;
  };
  return { output, issues: issues.toSorted((one, other) => indexOf(one) - indexOf(other)) };
}

/** An object with any number of members. */
function* checkMembers(
  members: ObjectMembers,
  { some, keys, schemaOf, refused }: Extract<Parts, { kind: 'keyed' }>,
  long: Long,
): Pieces<Checked> {
  // Where there are such members, they are all that is reported.
  const refusedOnes = refused.filter((key) => Object.hasOwn(members, key)).map((key) => [key, members[key]]);
  if (refusedOnes.length > 0) {
    const { output, issues: found } = checkAtOnce(keys, Object.fromEntries(refusedOnes));
    return { output, issues: found.map((issue) => inside(issue, members)) };
  }
  const issues: BodyIssue[] = [];
  const outputs: (readonly [key: string, output: unknown])[] = [];
  let few: (readonly [key: string, value: unknown])[] = [];
  const checkFew = (schema: v.GenericSchema): Checked => {
    const checked = checkAtOnce(schema, Object.fromEntries(few));
    for (const issue of checked.issues) issues.push(inside(issue, members));
    few = [];
    return checked;
  };
  const checkSome = (): void => {
    for (const entry of Object.entries(Object(checkFew(some).output))) outputs.push(entry);
  };
  for (const entry of Object.entries(members)) {
    const [key, value] = entry;
    if (issues.length >= enoughIssues) break;
    if (!long.has(value)) {
      few.push(entry);
      if (few.length < pieceMembers) continue;
      checkSome();
      yield;
      continue;
    }
    if (few.length > 0) checkSome();
    few.push(entry);
    checkFew(keys);
    const checked = yield* checkInPieces(schemaOf(key), value, long);
    issues.push(...issuesIn(members, key, checked.issues));
    outputs.push([key, checked.output]);
  }
  if (few.length > 0) checkSome();
  return { output: Object.fromEntries(outputs), issues };
}

function* checkList(
  items: readonly unknown[],
  { item, unique }: Extract<Parts, { kind: 'list' }>,
  long: Long,
): Pieces<Checked> {
  const issues: BodyIssue[] = [];
  const output: unknown[] = [];
  // As valibot does, items are compared where their types are right, whatever else is wrong with them.
  let areComparable = unique;
  for (const [index, value] of items.entries()) {
    if (issues.length >= enoughIssues) {
      areComparable = false;
      break;
    }
    if (long.has(value) && !unique) {
      const checked = yield* checkInPieces(item, value, long);
      issues.push(...issuesIn(items, index, checked.issues));
      output.push(checked.output);
    } else {
      const checked = checkAtOnce(item, value);
      issues.push(...issuesIn(items, index, checked.issues));
      output.push(checked.output);
      areComparable &&= checked.typed;
    }
    if (index % pieceMembers === 0) yield;
  }
  if (areComparable && (yield* hasEqualItems(output))) {
    const { issues: found } = checkAtOnce(
      v.pipe(
        v.unknown(),
        v.check(() => false, notUnique),
      ),
      output,
    );
    issues.push(...found);
  }
  return { output, issues };
}

function* hasEqualItems(items: readonly unknown[]): Pieces<boolean> {
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    seen.add(pythonRepr(item));
    if (seen.size <= index) return true;
    if (index % pieceItems === 0) yield;
  }
  return false;
}

/** The issues of a member or an item, as issues of what it is in. */
function issuesIn(around: unknown, key: string | number, issues: readonly BodyIssue[]): BodyIssue[] {
  if (issues.length === 0) return [];
  const step = {
    type: typeof key === 'number' ? 'array' : 'object',
    origin: 'value',
    input: around,
    key,
    value: Object(around)[key],
  };
  return issues.map((issue) => ({ ...issue, path: [step, ...(issue.path ?? [])] }) as BodyIssue); // as valibot makes them
}

/** An issue of some members, as an issue of all of them: the first step of its path names the object that it is in. */
function inside(issue: BodyIssue, members: ObjectMembers): BodyIssue {
  if (issue.path === undefined) return issue;
  const [first, ...others] = issue.path;
  return { ...issue, path: [{ ...first, input: members }, ...others] } as BodyIssue; // the path is as long as before
}
