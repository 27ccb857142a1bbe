import { openSync, readFileSync, writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Engine } from '../support/engines.ts';
import { type Declared, type Kind, type Location, templatesOf } from './declared_rows.ts';

/*
 * Imported before the files of a test: ends the text of each statement that declares a row type with a comment that names its location, and
 * notes the columns of its first result in the folder that TEST_STATEMENTS names.
 */

/** A statement that a test has run on an engine: where it is declared, and how its columns differ from that. */
export type Ran = { readonly location: Location; readonly engine: Engine; readonly complaints: readonly string[] };

const kinds: ReadonlyMap<number, Kind> = new Map([
  ...[20, 25, 19, 1043, 18, 3220].map((oid) => [oid, 'string'] as const), // int8 among them: its values are read as texts
  ...[21, 23, 26, 700, 701].map((oid) => [oid, 'number'] as const),
  [16, 'boolean'],
  ...[1082, 1114, 1184].map((oid) => [oid, 'Date'] as const),
]);

/** A column that tells something to a trigger, which no code reads. */
const setting = 'set_config';

/** What is wrong with the columns of a result. */
export function complaintsOf(
  { columns }: Pick<Declared, 'columns'>,
  fields: readonly pg.FieldDef[],
): readonly string[] {
  const found = new Map(fields.map(({ name, dataTypeID }) => [name, kinds.get(dataTypeID) ?? 'other']));
  const missing = [...columns].filter(([name, { isOptional }]) => !isOptional && !found.has(name));
  const undeclared = [...found.keys()].filter((name) => !columns.has(name) && name !== setting);
  return [
    ...missing.map(([name]) => `the result has no column ${name}`),
    ...undeclared.map((name) => `the row type lacks ${name}`),
    ...[...columns].flatMap(([name, { kind }]) => {
      const other = found.get(name);
      return other === undefined || kind === 'other' || other === 'other' || other === kind
        ? []
        : [`${name} is declared as ${kind}, and is ${other}`];
    }),
  ];
}

/** The comment that names a location. */
export const locationPattern = / \/\* row of (\S+) \*\//g;

/** A source whose statements with row types end with a comment that names their location. */
export const withLocations = (file: string, source: string): string =>
  templatesOf(file, source)
    .toSorted((one, other) => other.end - one.end)
    .reduce((text, { location, end }) => `${text.slice(0, end)} /* row of ${location} */${text.slice(end)}`, source);

/** The locations that a text names: the last is that of the whole statement, others are of its parts. */
export function locationsIn(text: string): {
  readonly whole: Location | undefined;
  readonly parts: readonly Location[];
} {
  const all = [...text.matchAll(locationPattern)].map(([, location = '']) => location);
  return text.endsWith('*/') ? { whole: all.at(-1), parts: all.slice(0, -1) } : { whole: undefined, parts: all };
}

/** The files of that folder: what is declared, written by the runner of all tests, and what was run. */
export const declaredFile = 'declared.json';
export const ranFile = 'ran.jsonl';

/** As JSON. */
export type WrittenDeclared = Omit<Declared, 'columns'> & {
  readonly columns: readonly (readonly [string, { readonly kind: Kind; readonly isOptional: boolean }])[];
};

const project = path.join(import.meta.dirname, '..', '..');

/** A client of the embedded database has a connection without a socket, which is of another class. */
const engineOf = (client: pg.Client): Engine =>
  Reflect.get(client, 'connection') instanceof pg.Connection ? 'postgresql' : 'embedded';

function nameLocations(): void {
  const folders = ['src', 'db'].map((folder) => path.join(project, folder, path.sep));
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context);
      const file = url.startsWith('file:') ? fileURLToPath(url) : '';
      if (!file.endsWith('.ts') || !folders.some((folder) => file.startsWith(folder))) return loaded;
      const source = withLocations(path.relative(project, file), readFileSync(file, 'utf8'));
      return { ...loaded, source };
    },
  });
}

function record(folder: string): void {
  // As the runner has written them.
  const written = JSON.parse(readFileSync(path.join(folder, declaredFile), 'utf8')) as readonly WrittenDeclared[];
  const declared = new Map(written.map(({ location, columns }) => [location, { columns: new Map(columns) }]));
  const noted = new Set<string>();
  // Opened once: a test may leave its process without a free file descriptor.
  const file = openSync(path.join(folder, ranFile), 'a');
  const write = (ran: Ran): void => void writeSync(file, `${JSON.stringify(ran)}\n`);
  const note = (text: string, engine: Engine, fields: readonly pg.FieldDef[]): void => {
    const key = `${engine} ${text}`;
    if (noted.has(key)) return;
    noted.add(key);
    const { whole, parts } = locationsIn(text);
    for (const location of parts) write({ location, engine, complaints: [] });
    const columns = whole === undefined ? undefined : declared.get(whole);
    if (whole !== undefined && columns !== undefined)
      write({ location: whole, engine, complaints: complaintsOf(columns, fields) });
  };
  const { query } = pg.Client.prototype;
  const noting = function (this: pg.Client, ...sent: unknown[]): unknown {
    const answer: unknown = Reflect.apply(query, this, sent);
    const [config] = sent;
    const text = typeof config === 'string' ? config : (config as { readonly text?: unknown } | undefined)?.text; // or nothing
    if (typeof text === 'string' && answer instanceof Promise) {
      answer.then(
        ({ fields }: pg.QueryResult) => note(text, engineOf(this), fields),
        () => {},
      );
    }
    return answer;
  };
  pg.Client.prototype.query = noting as typeof query;
}

const { TEST_STATEMENTS: folder } = process.env;
if (folder !== undefined) {
  nameLocations();
  record(folder);
}
