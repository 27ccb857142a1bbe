import * as v from 'valibot';
import { type Document, isNode, LineCounter, parseDocument, visit } from 'yaml';
import { aggregateUuid, type NewInventory } from '../../client/index.ts';
import { maxInteger, maxRatio } from '../../placement/inventory.ts';
import { isUuidLike, normalUuid } from '../../placement/uuid.ts';
import { messageOf } from '../../text/print.ts';
import { isDrainMark } from '../drain_marks.ts';
import { CommandFailure } from '../exit_codes.ts';
import { isPoolMark, poolPattern } from './pool_mark.ts';

/** Where something is in a file, such as `['providers', 0, 'children', 2]`. */
export type FileKeys = readonly (string | number)[];

/** A provider of a file. Undefined fields are not in the file, and stay as they are. */
export type FileProvider = {
  readonly keys: FileKeys;
  readonly name: string;
  /** For a provider that is created; without it the UUID is derived from the name. */
  readonly uuid: string | undefined;
  /** The name of its parent; null for a root. */
  readonly parent: string | null;
  readonly inventories: { readonly [resourceClass: string]: NewInventory } | undefined;
  /** As they are written; one may be there twice. */
  readonly traits: readonly string[] | undefined;
  /** By UUID. */
  readonly aggregates: readonly string[] | undefined;
};

/** The content of a file. */
export type FleetFile = {
  readonly pool: string | undefined;
  /** Each parent comes before its children. */
  readonly providers: readonly FileProvider[];
  /** The names of aggregates, by UUID. */
  readonly aggregateNames: ReadonlyMap<string, string>;
  /** The mistake at a path in the file, with the name of the file, the line and the path. */
  readonly mistake: (at: FileKeys, about: string) => string;
};

/** How deep providers may be nested in a file. */
export const deepestLevel = 100;

/** How many mistakes are reported at once. */
const mostMistakes = 20;

type Entry = {
  readonly name: string;
  readonly uuid?: string | undefined;
  readonly inventories?: { readonly [resourceClass: string]: NewInventory } | undefined;
  readonly traits?: readonly string[] | undefined;
  readonly aggregates?: readonly string[] | undefined;
  readonly children?: readonly Entry[] | undefined;
};

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && !/[\0\p{Cs}]/u.test(value) && [...value].length <= 200;

const noText = ({ input }: { readonly input: unknown }): string =>
  typeof input === 'string'
    ? 'is no text of 1 to 200 characters'
    : 'is no text; put it in quotes if it is meant as one';

const text = v.custom<string>(isText, noText);
const uuid = v.pipe(
  v.custom<string>((value) => typeof value === 'string' && isUuidLike(value), 'is no UUID'),
  v.transform(normalUuid),
);
const wholeNumber = (least: number) =>
  v.custom<number>(
    (value) => typeof value === 'number' && Number.isInteger(value) && value >= least && value <= maxInteger,
    `is no whole number from ${least} to ${maxInteger}`,
  );
const ratio = v.custom<number>(
  (value) => typeof value === 'number' && value >= 0 && value <= maxRatio,
  'is no number from 0 on',
);

const keysOf = (entries: object): string => Object.keys(entries).join(', ');

const fileText = 'the file';

/** An object with only these keys. Valibot treats the keys of every object, such as `constructor`, as known. */
function object<Entries extends v.ObjectEntries>(entries: Entries, what: string) {
  return v.strictObject(entries, ({ expected, input }) => {
    if (expected === 'never') return `is no key of ${what}, which has ${keysOf(entries)}`;
    if (input === null && what === fileText) return `is empty; it has the keys ${keysOf(entries)}`;
    return input === undefined ? 'is missing' : `is not ${what}, which has the keys ${keysOf(entries)}`;
  });
}

const list = <Item extends v.GenericSchema>(item: Item) =>
  v.array(item, 'is no list; write [] for none, or leave the key out to let it as it is');

const fields = object(
  {
    total: wholeNumber(1),
    reserved: v.exactOptional(wholeNumber(0)),
    min_unit: v.exactOptional(wholeNumber(1)),
    max_unit: v.exactOptional(wholeNumber(1)),
    step_size: v.exactOptional(wholeNumber(1)),
    allocation_ratio: v.exactOptional(ratio),
  },
  'an inventory',
);
/** A value that is no object is the total: the mistake for a number in quotes, as spreadsheets write it, says that it is no number. */
const inventory = v.lazy((value) =>
  isMap(value)
    ? fields
    : v.pipe(
        wholeNumber(1),
        v.transform((total): NewInventory => ({ total })),
      ),
);
const capitals = /^[A-Z0-9_]{1,255}$/;
const className = v.pipe(
  v.string(),
  v.check((key) => capitals.test(key), 'is no resource class: its name has capital letters, digits and _'),
);
const isMap = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);
/** Valibot's record ignores these keys without an error. */
const passedOver = ['__proto__', 'prototype', 'constructor'];
const record = <Key extends v.GenericSchema<string>, Value extends v.GenericSchema>(
  key: Key,
  value: Value,
  what: string,
) =>
  v.pipe(
    v.custom<object>(isMap, `is no map of ${what}; write {} for none, or leave the key out to let it as it is`),
    v.check((map) => !passedOver.some((one) => Object.hasOwn(map, one)), `has a key that is none of ${what}`),
    v.record(key, value),
  );
const trait = v.pipe(
  v.custom<string>(
    (value) => typeof value === 'string' && capitals.test(value),
    'is no trait: its name has capital letters, digits and _',
  ),
  v.check((name) => !isDrainMark(name), 'is the mark of "placement drain", which only that command gives and takes'),
  v.check((name) => !isPoolMark(name), 'is the mark of this command: write the key pool instead'),
);

/** The schemas of providers by their level. Each is made once, since valibot would make one for each provider. */
const levels: v.GenericSchema<unknown, Entry>[] = [];

function providerAt(level: number): v.GenericSchema<unknown, Entry> {
  const known = levels[level];
  if (known !== undefined) return known;
  const made: v.GenericSchema<unknown, Entry> = object(
    {
      name: text,
      uuid: v.optional(uuid),
      inventories: v.optional(record(className, inventory, 'resource classes')),
      traits: v.optional(list(trait)),
      aggregates: v.optional(list(text)),
      children: v.optional(
        level < deepestLevel
          ? v.lazy(() => list(providerAt(level + 1)))
          : v.custom<readonly Entry[]>(() => false, `is nested deeper than ${deepestLevel} levels`),
      ),
    },
    'a provider',
  );
  levels[level] = made;
  return made;
}

const fileSchema = object(
  {
    pool: v.optional(
      v.custom<string>(
        (value) => typeof value === 'string' && poolPattern.test(value),
        'is no name of a pool: 1 to 200 small letters, digits and _',
      ),
    ),
    aggregates: v.optional(record(text, uuid, 'aggregates')),
    providers: list(providerAt(1)),
  },
  fileText,
);

/**
 * Reads a file in YAML or JSON.
 *
 * @param name what the file is called in messages
 * @throws CommandFailure that names the line, the path and the value of each mistake
 */
export function readFleetFile(content: string, name: string): FleetFile {
  const lineCounter = new LineCounter();
  let document: Document.Parsed;
  let value: unknown;
  try {
    // JSON is YAML.
    document = parseDocument(content, { lineCounter, merge: true, prettyErrors: false });
    const at = (offset: number) => `${name}:${lineCounter.linePos(offset).line}`;
    // A warning is of something that would be left out, such as a tag.
    const [error] = [...document.errors, ...document.warnings];
    if (error !== undefined) throw wrong(`${at(error.pos[0])}: ${syntaxProblem(error)}`);
    /** The last node of each anchor so far: an anchor may be given again. */
    const anchored = new Map<string, unknown>();
    visit(document, {
      Value: (_key, node) => {
        if (node.anchor !== undefined) anchored.set(node.anchor, node);
      },
      Alias: (_key, alias, above) => {
        // With such a part as children, the tree of a provider would have no end.
        if (!above.some((node) => node === anchored.get(alias.source))) return;
        throw wrong(`${at(alias.range?.[0] ?? 0)}: *${alias.source} is a part of itself`);
      },
    });
    // A fleet may repeat a part of its file for each host.
    value = document.toJS({ maxAliasCount: 1_000_000 });
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw wrong(`${name}: ${syntaxProblem(error)}`);
  }
  const lineOf = (path: readonly unknown[]): string => {
    for (let length = path.length; length > 0; length--) {
      const node = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return `:${lineCounter.linePos(node.range[0]).line}`;
    }
    return '';
  };
  const mistake = (path: readonly unknown[], about: string): string =>
    `${name}${lineOf(path)}: ${pathText(path) || 'the file'}: ${about}`;
  const parsed = v.safeParse(fileSchema, value);
  if (!parsed.success) {
    const lines = parsed.issues.map((issue) => {
      const path = issue.path?.map(({ key }) => key) ?? [];
      return mistake(path, aboutIssue(issue));
    });
    throw wrong(few([...new Set(lines)]));
  }
  const { pool, aggregates = {}, providers } = parsed.output;
  const given = new Map(Object.entries(aggregates));
  const uuidOf = (one: string) => given.get(one) ?? (isUuidLike(one) ? normalUuid(one) : aggregateUuid(one));
  const found = flattened(providers, uuidOf);
  const twice = repeatedNames(found).map(({ path, name: again, first }) =>
    mistake(path, `${shown(again)} is also the name of ${pathText(first)}; each provider has a name of its own`),
  );
  if (twice.length > 0) throw wrong(few(twice));
  const named = new Map(Array.from(given, ([one, uuid]) => [uuid, one]));
  for (const one of providersOf(providers).flatMap((each) => each.aggregates ?? [])) {
    if (!given.has(one) && !isUuidLike(one)) named.set(aggregateUuid(one), one);
  }
  return { pool, providers: found, aggregateNames: named, mistake };
}

const syntaxProblem = (error: unknown): string =>
  /call stack/.test(messageOf(error)) ? `it is nested deeper than ${deepestLevel} levels` : messageOf(error);

const wrong = (message: string): CommandFailure => new CommandFailure('wrongInput', message);

/** The first mistakes, a line each, and how many more there are. */
export const few = (lines: readonly string[]): string =>
  lines.length <= mostMistakes
    ? lines.join('\n')
    : [...lines.slice(0, mostMistakes), `and ${lines.length - mostMistakes} more mistakes`].join('\n');

/** The value and the mistake. A missing key has no value; for an unknown key, the key is the value. */
function aboutIssue({ input, message, path }: v.BaseIssue<unknown>): string {
  const last = path?.at(-1);
  if (last?.origin === 'key' || input === undefined || (input === null && path === undefined)) return message;
  return `${shown(input)} ${message}`;
}

function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? String(value);
  return json.length > 100 ? `${json.slice(0, 100)}...` : json;
}

const pathText = (path: readonly unknown[]): string =>
  path
    .map((key) => {
      if (typeof key === 'number') return `[${key}]`;
      const word = String(key);
      return /^[\w-]+$/.test(word) ? `.${word}` : `[${JSON.stringify(word)}]`;
    })
    .join('')
    .replace(/^\./, '');

const providersOf = (entries: readonly Entry[]): readonly Entry[] =>
  entries.flatMap((entry) => [entry, ...providersOf(entry.children ?? [])]);

/** All providers, each parent before its children. */
function flattened(
  entries: readonly Entry[],
  uuidOf: (aggregate: string) => string,
  above: FileKeys = ['providers'],
  parent: string | null = null,
): readonly FileProvider[] {
  return entries.flatMap(({ name, uuid, inventories, traits, aggregates, children = [] }, index) => {
    const keys = [...above, index];
    const provider: FileProvider = {
      keys,
      name,
      uuid,
      parent,
      inventories,
      traits,
      aggregates: aggregates && [...new Set(aggregates.map(uuidOf))],
    };
    return [provider, ...flattened(children, uuidOf, [...keys, 'children'], name)];
  });
}

function repeatedNames(found: readonly FileProvider[]) {
  const first = new Map<string, FileKeys>();
  return found.flatMap(({ keys, name }) => {
    const before = first.get(name);
    if (before !== undefined) return [{ path: [...keys, 'name'], name, first: before }];
    first.set(name, keys);
    return [];
  });
}
