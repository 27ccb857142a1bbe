import { type Host, hostsOf, splitPort } from '../../db/engine/host_list.ts';
import { messageOf } from '../text/print.ts';

// This splits a URL as SQLAlchemy does (sqlalchemy.engine.url): a password may hold any character except "@",
// unescaped.
const shape =
  /^(?<scheme>\w+)(?:\+\w*)?:\/\/(?:(?<user>[^:/]*)(?::(?<password>[^@]*))?@)?(?<authority>[^/?]*)(?:\/(?<database>[^?]*))?(?:\?(?<query>.*))?$/s;

/** The parts of a database URL. `user` and `password` are unescaped, `query` is as written. */
export type DatabaseUrlParts = {
  readonly scheme: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** As written: an IPv6 address is in brackets, a port is from 1 to 65535. A missing part is an empty text. */
  readonly hosts: readonly Host[];
  readonly database: string | undefined;
  readonly query: string | undefined;
};

/** The scheme of a URL without the driver, in lower case: `mysql` of `MySQL+pymysql://...`. */
const schemeOf = (url: string): string => (/^\w+/.exec(url)?.[0] ?? '').toLowerCase();

/**
 * Splits a database URL as SQLAlchemy does, and drops the driver (`+psycopg2`).
 *
 * @param form the correct form of the URL, for the message about a problem
 * @param schemes the schemes that are allowed
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
  const { user, password, authority = '', database, query } = groups;
  // An "@" behind "/" or "?" was probably written in a password. The value of a parameter may have one.
  if (/@/.test(authority + (database ?? '') + (query ?? '').replace(/=.*/s, '')))
    return { problem: 'must have a single "@"; in a user or password write "@" as %40' };
  const hosts = authority.split(',').map(splitPort);
  const isPort = (port: string) => /^\d+$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535;
  if (hosts.some(({ port }) => port !== '' && !isPort(port))) {
    return { problem: 'must have a port from 1 to 65535 after the host' };
  }
  return {
    value: {
      scheme,
      user: user === undefined ? undefined : unescapeUrl(user),
      password: password === undefined ? undefined : unescapeUrl(password),
      hosts,
      database,
      query,
    },
  };
}

/**
 * Reads a database URL in SQLAlchemy's form and returns a `postgresql://` URL that means the same to node-postgres:
 * user and password are escaped, the driver (`+psycopg2`) is dropped, and `sslmode` has libpq's meaning.
 */
export function readDatabaseUrl(text: string): { readonly value: string } | { readonly problem: string } {
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
  const { user, password, hosts, database, query } = reading.value;
  const credentials =
    user === undefined
      ? ''
      : `${encodeURIComponent(user)}${password === undefined ? '' : `:${encodeURIComponent(password)}`}@`;
  const path = database === undefined ? '' : `/${encodeURI(database)}`;
  const parameters = new URLSearchParams(query);
  joinHosts(parameters);
  // node-postgres has no `allow`, which to libpq is `prefer` in another order.
  if (parameters.get('sslmode') === 'allow') parameters.set('sslmode', 'prefer');
  // Without this parameter node-postgres would treat `require` as `verify-full`.
  if (parameters.has('sslmode') && !parameters.has('uselibpqcompat')) parameters.set('uselibpqcompat', 'true');
  const search = parameters.size === 0 ? '' : `?${parameters}`;
  const authority = hosts.map(({ host, port }) => (port === '' ? host : `${host}:${port}`)).join(',');
  const value = `postgresql://${credentials}${authority}${path}${search}`;
  try {
    hostsOf(value);
  } catch (error) {
    return { problem: messageOf(error) };
  }
  return { value };
}

/** A URL with more parameters, as `a=1&b=2`: those whose name it has already are left out. No URL stays none. */
export function withParameters(url: string, parameters: string): string {
  if (url === '') return url;
  const query = shape.exec(url)?.groups?.query;
  const present = new URLSearchParams(query);
  const added = parameters.split('&').filter((each) => each !== '' && !present.has(each.split('=', 1)[0] ?? ''));
  return added.length === 0 ? url : `${url}${query === undefined ? '?' : '&'}${added.join('&')}`;
}

/** Writes several servers in SQLAlchemy's form, `host=a:5433&host=b`, as libpq has them: `host=a,b&port=5433,`. */
function joinHosts(parameters: URLSearchParams): void {
  const written = parameters.getAll('host').flatMap((text) => text.split(','));
  // An IPv6 address has several colons, the folder of a socket has a slash.
  const hosts = written.map((text) => (/^[^:/]+:\d+$/.test(text) ? splitPort(text) : { host: text, port: '' }));
  if (hosts.length > 0) parameters.set('host', hosts.map(({ host }) => host).join(','));
  if (hosts.some(({ port }) => port !== '')) parameters.set('port', hosts.map(({ port }) => port).join(','));
}

/** Hides the passwords in every URL of a text, and what only node-postgres needs. In doubt it hides more than the password. */
export function maskUrls(text: string): string {
  return text
    .replace(/(\w:\/\/[^\s/:@]*):[^\n]*@/g, '$1:***@')
    .replace(/([?&]\w*password=)[^&\s]*/gi, '$1***')
    .replace(/&uselibpqcompat=true/g, '');
}

/** Works like Python's `unquote`: a "%" that does not begin an escape stays as it is. */
function unescapeUrl(text: string): string {
  try {
    return decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25'));
  } catch {
    return text;
  }
}
