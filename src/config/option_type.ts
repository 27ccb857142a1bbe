import { strip } from '../python_strip.ts';
import { readDatabaseUrl } from './database_url.ts';

/** What a text means; `value` is undefined where an empty text leaves the default. `problem` ends "option = value: ...". */
export type Reading<T> = { readonly value: T | undefined } | { readonly problem: string };

/** How the text of an option is read. */
export type OptionType<T> = {
  /** What may be written, for people: `true or false`. */
  readonly expected: string;
  /** Whether every assignment counts (oslo's MultiStrOpt) rather than the last one. */
  readonly multi: boolean;
  /** A URL: a secret one may be shown without its password. */
  readonly url?: true;
  /** @param texts at least one; exactly one where `multi` is false. */
  readonly read: (texts: readonly string[]) => Reading<T>;
};

const single = <T>(expected: string, read: (text: string) => Reading<T>): OptionType<T> => ({
  expected,
  multi: false,
  read: ([text = '']) => read(text),
});

/** Any text; the empty one leaves the default. */
export const text: OptionType<string> = single('a text', (written) => ({
  value: written === '' ? undefined : written,
}));

const truths = new Map([
  ...['true', '1', 'on', 'yes'].map((word) => [word, true] as const),
  ...['false', '0', 'off', 'no'].map((word) => [word, false] as const),
]);

/** The words of oslo.config's Boolean, in any case. */
export const boolean: OptionType<boolean> = single('true or false', (written) => {
  const value = truths.get(written.toLowerCase());
  return value === undefined ? { problem: 'must be true or false (or 1, on, yes, 0, off, no)' } : { value };
});

/** An integer as Python's `int` takes it (`1_000`, `+5`); the empty text leaves the default, as oslo.config's None. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER): OptionType<number> {
  const expected =
    max === Number.MAX_SAFE_INTEGER ? `an integer of at least ${min}` : `an integer from ${min} to ${max}`;
  return single(expected, (written) => {
    const digits = strip(written);
    if (digits === '') return { value: undefined };
    const value = /^[+-]?\d+(?:_\d+)*$/.test(digits) ? Number(digits.replaceAll('_', '')) : Number.NaN;
    return value >= min && value <= max ? { value: value + 0 } : { problem: `must be ${expected}` };
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

/** The kind of endpoint; Keystone's libraries take `internalURL` for `internal`. */
export const endpointInterface: OptionType<'public' | 'internal' | 'admin'> = (() => {
  const interfaces = choice('public', 'internal', 'admin');
  return { ...interfaces, read: (texts) => interfaces.read(texts.map((written) => written.replace(/URL$/, ''))) };
})();

/** A microversion that the service has. */
export const microversion: OptionType<string> = single('a version from 1.0 to 1.40', (written) =>
  /^1\.(?:[0-9]|[123][0-9]|40)$/.test(written) ? { value: written } : { problem: 'must be a version from 1.0 to 1.40' },
);

/** Texts with commas between (oslo.config's ListOpt); commas at the end do not count. */
export const list: OptionType<readonly string[]> = single('a list with commas between', (written) => {
  const content = strip(written).replace(/,+$/, '');
  return { value: content === '' ? [] : content.split(',').map(strip) };
});

/** A text for each assignment (oslo.config's MultiStrOpt). */
export const texts: OptionType<readonly string[]> = {
  expected: 'a text; the option may be repeated',
  multi: true,
  read: (written) => ({ value: written }),
};

/** @param empty what the empty text means */
const postgresqlUrl = (empty: Reading<string>): OptionType<string> => ({
  ...single('postgresql://user:password@host:port/database', (written) =>
    written === '' ? empty : readDatabaseUrl(written),
  ),
  url: true,
});

/**
 * The URL of the database that everything is in. The empty text, perhaps a template that was not filled in, does not mean the
 * embedded database: that would serve an empty one.
 */
export const mainDatabaseUrl = postgresqlUrl({
  problem:
    'must not be empty. Write postgresql://user:password@host/database, or leave the option out for the embedded database',
});

/** A URL of a PostgreSQL database; the empty text leaves it unset. */
export const databaseUrl = postgresqlUrl({ value: undefined });
