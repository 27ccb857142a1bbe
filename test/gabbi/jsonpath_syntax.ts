/*
 * gabbi uses JSONPath in the form of the Python library jsonpath-rw-ext. Parts that jsonpath-plus also has are
 * rewritten for it. Parts that it does not have (`len`, `sorted`) or evaluates as JavaScript (filters) become separate
 * steps.
 */

export type Step =
  /** The part after `$`, for jsonpath-plus. */
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'len' | 'sorted' }
  | { readonly kind: 'filter'; readonly conditions: readonly Filter[] };

const operators = ['==', '<=', '>=', '!=', '=', '<', '>', '~'] as const;
type Operator = (typeof operators)[number];

/** A condition in `[?path = "x" & path]`: a path that must exist, or whose value is compared with the operand. */
export type Filter = {
  readonly path: readonly Step[];
  readonly operator: Operator | undefined;
  readonly operand: string | number | boolean;
};

/** @throws Error if the path cannot be parsed */
export function parseJsonPath(path: string): readonly Step[] {
  const reader = readerOf(path);
  const steps = readSteps(reader);
  if (reader.rest() !== '') throw reader.error();
  return steps;
}

type Reader = {
  rest(): string;
  /**
   * Returns the text that the pattern matches here, and moves behind it. Undefined if the pattern does not
   * match.
   */
  take(pattern: RegExp): string | undefined;
  error(): Error;
};

function readerOf(text: string): Reader {
  let index = 0;
  return {
    rest: () => text.slice(index),
    take: (pattern) => {
      const found = new RegExp(`^\\s*(?:${pattern.source})`).exec(text.slice(index))?.[0];
      index += found?.length ?? 0;
      return found?.trim();
    },
    error: () => new Error(`The JSONPath ${text} is not understood from ${JSON.stringify(text.slice(index))} on.`),
  };
}

const name = /[a-zA-Z_@][\w@-]*/;
const quoted = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/;

function readSteps(reader: Reader): readonly Step[] {
  const steps: Step[] = [];
  let path = '';
  const flush = () => {
    if (path.endsWith('..')) throw reader.error();
    if (path !== '') steps.push({ kind: 'path', path });
    path = '';
  };
  const rooted = reader.take(/\$/) !== undefined;
  for (let first = true; ; first = false) {
    const descend = reader.take(/\.\./);
    const child = descend ?? reader.take(/\./) ?? (first && !rooted ? '' : undefined);
    const field = child === undefined ? undefined : (reader.take(name) ?? unquote(reader.take(quoted)));
    if (descend !== undefined) path += '..';
    if (field !== undefined) {
      path += member(field);
    } else if (child !== undefined && reader.take(/\*/) !== undefined) {
      path += '[*]';
    } else if (reader.take(/`len`/) !== undefined) {
      flush();
      steps.push({ kind: 'len' });
    } else if (reader.take(/`sorted`/) !== undefined) {
      flush();
      steps.push({ kind: 'sorted' });
    } else if (reader.take(/\[\s*\?/) !== undefined) {
      flush();
      steps.push({ kind: 'filter', conditions: readConditions(reader) });
      if (reader.take(/\]/) === undefined) throw reader.error();
    } else if (reader.take(/\[/) !== undefined) {
      path += readSubscript(reader);
    } else {
      if (child !== undefined) throw reader.error();
      flush();
      return steps;
    }
  }
}

function readSubscript(reader: Reader): string {
  const slice = reader.take(/\*|-?\d*:-?\d*|-?\d+/);
  if (slice !== undefined) {
    if (reader.take(/\]/) === undefined) throw reader.error();
    return subscriptOf(slice);
  }
  const field = reader.take(name) ?? unquote(reader.take(quoted));
  if (field === undefined || reader.take(/\]/) === undefined) throw reader.error();
  return member(field);
}

/** A negative index counts from the end. jsonpath-plus supports that only as a slice. */
function subscriptOf(slice: string): string {
  if (!slice.startsWith('-') || slice.includes(':')) return `[${slice}]`;
  return slice === '-1' ? '[-1:]' : `[${slice}:${Number(slice) + 1}]`;
}

/** The backtick tells jsonpath-plus that a `*`, `@` or `,` in the name is an ordinary character. */
function member(field: string): string {
  if (/[\]['"^~#;()]/.test(field))
    throw new Error(`A JSONPath with the member ${JSON.stringify(field)} is not supported.`);
  return `['\`${field}']`;
}

function readConditions(reader: Reader): readonly Filter[] {
  const conditions: Filter[] = [];
  do {
    if (reader.take(/\(/) === undefined) {
      conditions.push(readCondition(reader));
    } else {
      conditions.push(...readConditions(reader));
      if (reader.take(/\)/) === undefined) throw reader.error();
    }
  } while (reader.take(/&/) !== undefined);
  return conditions;
}

function readCondition(reader: Reader): Filter {
  const path = readSteps(reader);
  const operator = operators.find((candidate) => reader.take(new RegExp(candidate)) !== undefined);
  if (operator === undefined) return { path, operator, operand: true };
  const number = reader.take(/-?\d+(?:\.\d+)?/);
  if (number !== undefined) return { path, operator, operand: Number(number) };
  const text = reader.take(quoted);
  if (text !== undefined) return { path, operator, operand: unquote(text) ?? '' };
  const word = reader.take(name);
  if (word === undefined) throw reader.error();
  return { path, operator, operand: word === 'true' ? true : word === 'false' ? false : word };
}

const unquote = (text: string | undefined): string | undefined => text?.slice(1, -1).replace(/\\(.)/g, '$1');
