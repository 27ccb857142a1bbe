import type { Reading } from './option_type.ts';

// As SQLAlchemy takes a URL apart (sqlalchemy.engine.url): a password may hold anything but "@", unescaped.
const shape =
  /^(?<scheme>\w+)(?:\+\w*)?:\/\/(?:(?<user>[^:/]*)(?::(?<password>[^@]*))?@)?(?<host>\[[^/?\]]+\]|[^/:?]*)(?::(?<port>[^/?]*))?(?:\/(?<database>[^?]*))?(?:\?(?<query>.*))?$/s;

/** A database URL, taken apart. `user` and `password` are unescaped, `port` is from 1 to 65535, `query` is as written. */
export type DatabaseUrlParts = {
  readonly scheme: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** As written: an IPv6 address in brackets; empty where there is none. */
  readonly host: string;
  readonly port: number | undefined;
  readonly database: string | undefined;
  readonly query: string | undefined;
};

/** The scheme of a URL without the driver, in lower case: `mysql` of `MySQL+pymysql://...`. */
const schemeOf = (url: string): string => (/^\w+/.exec(url)?.[0] ?? '').toLowerCase();

/**
 * Takes a database URL apart as SQLAlchemy does, without the driver (`+psycopg2`).
 *
 * @param form the URL that should have been written, for the problem
 * @param schemes those that are allowed
 */
export function splitDatabaseUrl(
  text: string,
  form: string,
  schemes: readonly string[],
): { readonly value: DatabaseUrlParts } | { readonly problem: string } {
  const groups = shape.exec(text)?.groups;
  const scheme = schemeOf(text);
  if (groups === undefined || !schemes.includes(scheme) || /\s/.test(text)) {
    return { problem: `must be a URL of the form ${form}` };
  }
  const { user, password, host = '', port, database, query } = groups;
  if (host.includes('@')) return { problem: 'must have a single "@": one in the user or password is written %40' };
  if (port !== undefined && port !== '' && !(/^\d+$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535)) {
    return { problem: 'must have a port from 1 to 65535 after the host' };
  }
  return {
    value: {
      scheme,
      user: user === undefined ? undefined : unescapeUrl(user),
      password: password === undefined ? undefined : unescapeUrl(password),
      host,
      port: port ? Number(port) : undefined,
      database,
      query,
    },
  };
}

/**
 * Reads a database URL as SQLAlchemy writes it and gives the `postgresql://` URL that node-postgres understands alike: user and
 * password escaped, the driver (`+psycopg2`) dropped, and `sslmode` in libpq's meaning.
 */
export function readDatabaseUrl(text: string): Reading<string> {
  const scheme = schemeOf(text);
  if (scheme === 'mysql' || scheme === 'mariadb') {
    return {
      problem:
        'MySQL and MariaDB are not supported. Write postgresql://user:password@host/database, and bring the data there with "placement-manage import"',
    };
  }
  if (scheme === 'sqlite') {
    return {
      problem:
        'SQLite is not supported. Leave the option unset to use the embedded database, or write postgresql://user:password@host/database',
    };
  }
  const reading = splitDatabaseUrl(text, 'postgresql://user:password@host:port/database', ['postgresql', 'postgres']);
  if ('problem' in reading) return reading;
  const { user, password, host, port, database, query } = reading.value;
  const credentials =
    user === undefined
      ? ''
      : `${encodeURIComponent(user)}${password === undefined ? '' : `:${encodeURIComponent(password)}`}@`;
  const path = database === undefined ? '' : `/${encodeURI(database)}`;
  const parameters = new URLSearchParams(query);
  // Without this node-postgres would take `require` for `verify-full`.
  if (parameters.has('sslmode') && !parameters.has('uselibpqcompat')) parameters.set('uselibpqcompat', 'true');
  const search = parameters.size === 0 ? '' : `?${parameters}`;
  return { value: `postgresql://${credentials}${host}${port === undefined ? '' : `:${port}`}${path}${search}` };
}

/** Hides the passwords in every URL of a text. It hides too much rather than too little. */
export function maskUrls(text: string): string {
  return text.replace(/(\w:\/\/[^\s/:@]*):[^\n]*@/g, '$1:***@').replace(/([?&]\w*password=)[^&\s]*/gi, '$1***');
}

/** As Python's `unquote`, which keeps what is no escape. */
function unescapeUrl(text: string): string {
  try {
    return decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25'));
  } catch {
    return text;
  }
}
