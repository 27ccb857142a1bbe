import { placementService } from '../placement/microversions.ts';
import { newestOf, versionText, versionTexts } from '../placement/versions.ts';
import { socketFileOf, socketProblem } from '../text/socket_address.ts';
import { strip } from '../text/strings.ts';
import { readDatabaseUrl } from './database_url.ts';

/** The value of a text. An undefined `value` means the default. `problem` completes a line "option = value: ...". */
export type Reading<T> = { readonly value: T | undefined } | { readonly problem: string };

/** How the text of an option is read. */
export type OptionType<T> = {
  /** The allowed values, in words for messages: `true or false`. */
  readonly expected: string;
  /** Whether every assignment counts (oslo's MultiStrOpt), or only the last one. */
  readonly multi: boolean;
  /** The value is a URL. If the option is secret, the URL is shown without its password. */
  readonly url?: true;
  /** @param texts at least one; exactly one if `multi` is false. */
  readonly read: (texts: readonly string[]) => Reading<T>;
};

/** Properties of some options. */
type Peculiarities = {
  /** The value is never shown. A database URL is shown without its password. */
  readonly secret?: true;
  /** Older names, `[section, option]`. They are read if the same file does not have the option itself. */
  readonly formerly?: readonly (readonly [section: string, name: string])[];
  /** An option of Keystone's authentication plugin. It is read from the section named by `auth_section`. */
  readonly plugin?: true;
  /** The path is relative to the directories of the configuration. */
  readonly beside?: true;
};

/** An option: which values it may have and how they are read, and its value if it is not configured. */
export type OptionSpec<T> = Peculiarities & {
  readonly type: OptionType<NonNullable<T>>;
  readonly default: T;
  /** One sentence for operators: what the option is for. */
  readonly help: string;
};

/** An option with a default. */
export const option = <T extends {}>(
  type: OptionType<T>,
  byDefault: NoInfer<T>,
  help: string,
  peculiarities: Peculiarities = {},
): OptionSpec<T> => ({ type, default: byDefault, help, ...peculiarities });

/** An option that is undefined if it is not configured. */
export const optional = <T extends {}>(
  type: OptionType<T>,
  help: string,
  peculiarities: Peculiarities = {},
): OptionSpec<T | undefined> => ({ type, default: undefined, help, ...peculiarities });

const single = <T>(expected: string, read: (text: string) => Reading<T>): OptionType<T> => ({
  expected,
  multi: false,
  read: ([text = '']) => read(text),
});

/** Any text. An empty text means the default. */
export const text: OptionType<string> = single('a text', (written) => ({
  value: written === '' ? undefined : written,
}));

/** An address to listen on: a host of this machine, or `unix:` and the absolute name of a socket. */
export const listenAddress: OptionType<string> = {
  ...text,
  expected: 'an address, or unix:/FILE',
  read: (texts) => {
    const file = socketFileOf(texts[0] ?? '');
    if (file === undefined) return text.read(texts);
    const problem = socketProblem(file);
    return problem === undefined ? { value: texts[0] } : { problem };
  },
};

/** The permissions of a file, as `chmod` takes them: three octal digits. */
export const fileMode: OptionType<string> = single('three octal digits', (written) => {
  if (written === '') return { value: undefined };
  return /^0?[0-7]{3}$/.test(written) ? { value: written } : { problem: 'must be three octal digits, such as 660' };
});

const truths = new Map([
  ...['true', '1', 'on', 'yes'].map((word) => [word, true] as const),
  ...['false', '0', 'off', 'no'].map((word) => [word, false] as const),
]);

/** The words of oslo.config's Boolean, in any case. */
export const boolean: OptionType<boolean> = single('true or false', (written) => {
  const value = truths.get(written.toLowerCase());
  return value === undefined ? { problem: 'must be true or false (or 1, on, yes, 0, off, no)' } : { value };
});

/**
 * An integer in the forms of Python's `int` (`1_000`, `+5`). An empty text means the default, like oslo.config's None.
 */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER): OptionType<number> {
  const expected =
    max === Number.MAX_SAFE_INTEGER ? `an integer of at least ${min}` : `an integer from ${min} to ${max}`;
  return single(expected, (written) => {
    const digits = strip(written);
    if (digits === '') return { value: undefined };
    const value = /^[+-]?\d+(?:_\d+)*$/.test(digits) ? Number(digits.replaceAll('_', '')) : Number.NaN;
    return value >= min && value <= max ? { value } : { problem: `must be ${expected}` };
  });
}

/** One of the choices, in exactly this spelling. */
export function choice<const T extends string>(...choices: readonly T[]): OptionType<T> {
  const expected = `one of ${choices.join(', ')}`;
  return single(expected, (written) => {
    const value = choices.find((known) => known === written);
    return value === undefined ? { problem: `must be ${expected}` } : { value };
  });
}

/** The kind of endpoint. As in Keystone's libraries, `internalURL` means `internal`. */
export const endpointInterface: OptionType<'public' | 'internal' | 'admin'> = (() => {
  const interfaces = choice('public', 'internal', 'admin');
  return { ...interfaces, read: (texts) => interfaces.read(texts.map((written) => written.replace(/URL$/, ''))) };
})();

const { ranges } = placementService;
/** The newest microversion that the service has. */
export const newestMicroversion = versionText(newestOf(placementService));
const microversionRanges = `a version ${ranges.map(({ oldest, newest }) => `from ${versionText(oldest)} to ${versionText(newest)}`).join(', or ')}`;

/** A microversion that the service has. The versions above 1.39 had other names before version 2. */
export const microversion: OptionType<string> = single(microversionRanges, (written) => {
  if (versionTexts(placementService).includes(written)) return { value: written };
  const [, former] = /^1\.4([0-5])$/.exec(written) ?? [];
  return { problem: former === undefined ? `must be ${microversionRanges}` : `is 2.${Number(former) + 1} now` };
});

/** Texts separated by commas (oslo.config's ListOpt). Commas at the end are ignored. */
export const list: OptionType<readonly string[]> = single('a list with commas between', (written) => {
  const content = strip(written).replace(/,+$/, '');
  return { value: content === '' ? [] : content.split(',').map(strip) };
});

/** Names of consumer types, as in claims. `unknown` is no such name: answers use it for consumers without a type. */
export const consumerTypes: OptionType<readonly string[]> = {
  ...list,
  expected: 'consumer types with commas between',
  read: (texts) => {
    const reading = list.read(texts);
    if ('problem' in reading) return reading;
    const wrong = reading.value?.find((name) => !/^[A-Z0-9_]{1,255}$/.test(name));
    if (wrong === undefined) return reading;
    return { problem: `must be consumer types, of the letters A to Z, digits and _, and '${wrong}' is none` };
  },
};

/** Queries for candidates, each with a name. `parseShapes` reads the text, where the service is put together. */
export const shapes: OptionType<string> = {
  ...text,
  expected: 'names and queries, such as small: resources=VCPU:2; ...',
};

/** A text for each assignment (oslo.config's MultiStrOpt). */
export const texts: OptionType<readonly string[]> = {
  expected: 'a text; the option may be repeated',
  multi: true,
  read: (written) => ({ value: written }),
};

/** @param empty the result for an empty text */
const postgresqlUrl = (empty: Reading<string>): OptionType<string> => ({
  ...single('postgresql://user:password@host:port/database', (written) =>
    written === '' ? empty : readDatabaseUrl(written),
  ),
  url: true,
});

/**
 * The URL of the main database. An empty text is an error and does not mean the embedded database: the empty text may
 * come from a template that was not filled in, and the service would then serve an empty database.
 */
export const mainDatabaseUrl = postgresqlUrl({
  problem:
    'must not be empty. Write postgresql://user:password@host/database, or leave the option out for the embedded database',
});

/** A URL of a PostgreSQL database. An empty text leaves the option unset. */
export const databaseUrl = postgresqlUrl({ value: undefined });
