import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/*
 * The row types that the code declares for its statements, read from the source: sql<{ id: number }>`select ...`.
 */

/** A value that a row type declares; `other` for what has no simple type, such as lists and JSON. */
export type Kind = 'number' | 'string' | 'boolean' | 'Date' | 'other';

/** A statement with a row type, where it is written, and the columns of its rows. */
export type Declared = { readonly location: Location; readonly columns: Columns };

/** File and line. */
export type Location = string;

/** Of each column its kind, and whether only some texts of the statement have it. */
type Columns = ReadonlyMap<string, { readonly kind: Kind; readonly isOptional: boolean }>;

const project = path.join(import.meta.dirname, '..', '..');

/** The statements with a row type that is an object. */
export function declaredRows(): readonly Declared[] {
  return ['src', 'db'].flatMap((folder) =>
    readdirSync(path.join(project, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) => declaredIn(path.join(folder, file))),
  );
}

function declaredIn(file: string): readonly Declared[] {
  return templatesOf(file, readFileSync(path.join(project, file), 'utf8')).flatMap(({ location, type }) => {
    const columns = columnsOf(type, file);
    return columns === undefined ? [] : [{ location, columns }];
  });
}

/** The texts sql<Type>`...` of a source, and the index of the backtick that ends each. */
export function templatesOf(
  file: string,
  source: string,
): readonly { readonly location: Location; readonly type: string; readonly end: number }[] {
  return [...source.matchAll(/\bsql</g)].flatMap(({ index }) => {
    const type = balanced(source, index + 3);
    const start = index + 3 + type.length;
    if (source[start] !== '`') return [];
    const line = source.slice(0, index).split('\n').length;
    return [{ location: `${file}:${line}`, type: type.slice(1, -1).trim(), end: endOfTemplate(source, start) }];
  });
}

/** The text from an opening bracket to the one that closes it. */
function balanced(source: string, start: number): string {
  const closing: Readonly<Record<string, string>> = { '<': '>', '{': '}', '(': ')', '[': ']' };
  const open: string[] = [];
  for (let at = start; at < source.length; at += 1) {
    const letter = source[at] ?? '';
    if (closing[letter] !== undefined && !(letter === '<' && open.length > 0 && source[at + 1] === ' '))
      open.push(closing[letter]);
    else if (letter === open.at(-1)) open.pop();
    if (open.length === 0) return source.slice(start, at + 1);
  }
  throw new Error(`Nothing closes ${source.slice(start, start + 40)}`);
}

/** The index of the backtick that ends a template. */
function endOfTemplate(source: string, start: number): number {
  for (let at = start + 1; at < source.length; ) {
    if (source[at] === '`') return at;
    if (source[at] === '$' && source[at + 1] === '{') at = endOfFilled(source, at + 2);
    else at += source[at] === '\\' ? 2 : 1;
  }
  throw new Error(`Nothing closes ${source.slice(start, start + 40)}`);
}

/** The index behind the brace that ends what is filled in; templates may be nested there. */
function endOfFilled(source: string, start: number): number {
  let depth = 1;
  for (let at = start; at < source.length; ) {
    const letter = source[at] ?? '';
    if (letter === '`') at = endOfTemplate(source, at) + 1;
    else if (letter === "'" || letter === '"') at = source.indexOf(letter, at + 1) + 1;
    else {
      if (letter === '{') depth += 1;
      if (letter === '}') depth -= 1;
      at += 1;
      if (depth === 0) return at;
    }
  }
  throw new Error(`Nothing closes ${source.slice(start, start + 40)}`);
}

/** The columns of a row type; undefined if it is not that of a row. */
function columnsOf(type: string, file: string): Columns | undefined {
  const sum = splitAt(type, '&');
  if (sum.length > 1) {
    const all = sum.map((each) => columnsOf(each, file));
    return all.includes(undefined) ? undefined : new Map(all.flatMap((each) => [...(each ?? [])]));
  }
  const [, mapped = '', left = ''] = /^\{\s*readonly \[\w+ in Exclude<keyof (\w+), ([^>]*)>\]:/.exec(type) ?? [];
  if (mapped !== '') return columnsOf(`Omit<${mapped}, ${left}>`, file);
  if (type.startsWith('{'))
    return new Map(splitAt(withoutComments(type.slice(1, -1)), ';').flatMap((field) => columnOf(field)));
  const [, tool = '', args = ''] = /^(Pick|Omit)<(.*)>$/s.exec(type) ?? [];
  if (tool !== '') {
    const [of = '', ...names] = splitAt(args, ',');
    const columns = columnsOf(of.trim(), file);
    const chosen = new Set(Array.from(names.join(',').matchAll(/'(\w+)'/g), ([, name = '']) => name));
    return columns && new Map([...columns].filter(([name]) => chosen.has(name) === (tool === 'Pick')));
  }
  const found = /^\w+$/.test(type) ? declarationOf(type, file) : undefined;
  return found && columnsOf(found.type, found.file);
}

function columnOf(
  field: string,
): readonly (readonly [string, { readonly kind: Kind; readonly isOptional: boolean }])[] {
  const [, name, optional, type = ''] = /^(?:readonly\s+)?'?(\w+)'?(\?)?\s*:\s*([\s\S]+)$/.exec(field) ?? [];
  if (name === undefined) return [];
  return [
    [name, { kind: kindOf(type.replace(/\s*\|\s*(null|undefined)\b/g, '').trim()), isOptional: optional === '?' }],
  ];
}

/** They may have semicolons. */
const withoutComments = (text: string): string => text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');

const kindOf = (type: string): Kind =>
  type === 'number' || type === 'string' || type === 'boolean' || type === 'Date' ? type : 'other';

/** Splits a text at one of these characters outside of brackets. */
function splitAt(text: string, ...separators: readonly string[]): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? '';
    if ('<{(['.includes(letter)) depth += 1;
    if ('>})]'.includes(letter) && text[at - 1] !== '=') depth -= 1;
    if (depth < 0) break;
    if (depth !== 0 || !separators.includes(letter)) continue;
    parts.push(text.slice(start, at));
    start = at + 1;
  }
  return [...parts, text.slice(start)].map((part) => part.trim()).filter((part) => part !== '');
}

/** Where a type is declared, in this file or in one that it imports. */
function declarationOf(name: string, file: string): { readonly type: string; readonly file: string } | undefined {
  const source = readFileSync(path.join(project, file), 'utf8');
  const declared = new RegExp(`^(?:export )?type ${name} =`, 'm').exec(source);
  if (declared !== null) {
    const [type = ''] = splitAt(withoutComments(source.slice(declared.index + declared[0].length)), ';');
    return { type, file };
  }
  for (const [, names = '', from = ''] of source.matchAll(/import (?:type )?\{([^}]*)\} from '(\.[^']*)'/g)) {
    if (!new RegExp(`\\b${name}\\b`).test(names)) continue;
    const imported = path.join(path.dirname(file), from);
    return existsSync(path.join(project, imported)) ? declarationOf(name, imported) : undefined;
  }
  return undefined;
}
