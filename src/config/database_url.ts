import type { Reading } from './option_type.ts';

// As SQLAlchemy takes a URL apart (sqlalchemy.engine.url): a password may hold anything but "@", unescaped.
const shape =
  /^(?<scheme>\w+)(?:\+\w*)?:\/\/(?:(?<user>[^:/]*)(?::(?<password>[^@]*))?@)?(?<host>\[[^/?\]]+\]|[^/:?]*)(?::(?<port>[^/?]*))?(?:\/(?<database>[^?]*))?(?:\?(?<query>.*))?$/s;

/**
 * Reads a database URL as SQLAlchemy writes it and gives the `postgresql://` URL that node-postgres understands alike: user and
 * password escaped, the driver (`+psycopg2`) dropped, and `sslmode` in libpq's meaning.
 */
export function readDatabaseUrl(text: string): Reading<string> {
  const groups = shape.exec(text)?.groups;
  const scheme = (/^\w+/.exec(text)?.[0] ?? '').toLowerCase();
  if (scheme === 'mysql' || scheme === 'mariadb') {
    return {
      problem:
        'MySQL and MariaDB are not supported. Import the database into PostgreSQL (for example with pgloader), and write postgresql://user:password@host/database',
    };
  }
  if (scheme === 'sqlite') {
    return {
      problem:
        'SQLite is not supported. Leave the option unset to use the embedded database, or write postgresql://user:password@host/database',
    };
  }
  if (groups === undefined || (scheme !== 'postgresql' && scheme !== 'postgres') || /\s/.test(text)) {
    return { problem: 'must be a URL of the form postgresql://user:password@host:port/database' };
  }
  const { user, password, host = '', port, database, query } = groups;
  if (host.includes('@')) return { problem: 'must have a single "@": one in the user or password is written %40' };
  if (port !== undefined && port !== '' && !(/^\d+$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535)) {
    return { problem: 'must have a port from 1 to 65535 after the host' };
  }
  const credentials =
    user === undefined ? '' : `${reescape(user)}${password === undefined ? '' : `:${reescape(password)}`}@`;
  const path = database === undefined ? '' : `/${encodeURI(database)}`;
  const parameters = new URLSearchParams(query);
  // Without this node-postgres would take `require` for `verify-full`.
  if (parameters.has('sslmode') && !parameters.has('uselibpqcompat')) parameters.set('uselibpqcompat', 'true');
  const search = parameters.size === 0 ? '' : `?${parameters}`;
  return { value: `postgresql://${credentials}${host}${port ? `:${port}` : ''}${path}${search}` };
}

/** Hides the passwords in every URL of a text. It hides too much rather than too little. */
export function maskUrls(text: string): string {
  return text.replace(/(\w:\/\/[^\s/:@]*):[^\n]*@/g, '$1:***@').replace(/([?&]\w*password=)[^&\s]*/gi, '$1***');
}

/** As Python's `unquote`, which keeps what is no escape, and then escaped for a URL. */
function reescape(text: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25')));
  } catch {
    return encodeURIComponent(text);
  }
}
