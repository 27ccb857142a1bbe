import type { Pieces } from '../request/turns.ts';

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

/** How many values are parsed in one piece. */
const pieceValues = 500;

type Container = {
  readonly into: unknown[] | Record<string, unknown>;
  /** How many values were parsed before it. */
  readonly before: number;
  /** The key of the value that comes next, in an object. */
  key: string;
  members: number;
};

/**
 * Parses JSON as JSON.parse does, but in pieces, and with limits: depth, values, and members of one object.
 *
 * @param options.longFrom how many values an object or an array has that counts as long
 * @throws Error that says what is wrong, and where
 */
export function* parseLongJson(text: string, { longFrom = longValues } = {}): Pieces<LongJson> {
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
type Token = '[' | '{' | { readonly of: unknown };

/** Reads the tokens of a JSON text from its beginning. */
function openReader(text: string) {
  let at = 0;
  /** The places of the next backslash and quote. Searched for when they are passed, so that the text is gone through once. */
  let backslash = placeOf('\\', 0);
  let quote = placeOf('"', 0);
  function placeOf(character: string, from: number): number {
    const place = text.indexOf(character, from);
    return place === -1 ? Number.POSITIVE_INFINITY : place;
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
  /** Parses the text up to a place as one value. */
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
      if (backslash < from) backslash = placeOf('\\', from);
      if (quote < from) quote = placeOf('"', from);
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
    value: (): Token => {
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
