import { isIP } from 'node:net';
import { splitDatabaseUrl } from '../../config/database_url.ts';

/** How the connection to the source is encrypted. */
export type SourceTls = {
  /** PEM files. */
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly verifyCertificate: boolean;
  /** Whether the certificate must name the host of the URL. */
  readonly verifyHost: boolean;
};

/** A MySQL or MariaDB database to import from. */
export type SourceSettings = {
  readonly host: string;
  readonly port: number;
  /** The path of a Unix socket, instead of host and port. */
  readonly socketPath: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string;
  /** Undefined if the connection is not encrypted. */
  readonly tls: SourceTls | undefined;
};

/**
 * Reads the URL of upstream's database in SQLAlchemy's form for PyMySQL, mysqlclient and others. The driver is dropped,
 * and so are query parameters that only concern the driver. One of these is `charset`: texts are always read as
 * Unicode.
 *
 * `ssl_ca`, `ssl_cert`, `ssl_key` and `ssl_check_hostname` have the same meaning as in PyMySQL, and `ssl_mode` the same
 * as in MySQL's own clients.
 */
export function readSourceUrl(text: string): { readonly value: SourceSettings } | { readonly problem: string } {
  const reading = splitDatabaseUrl(text, form, ['mysql', 'mariadb']);
  if ('problem' in reading) return reading;
  const { hosts, user, password, database, query } = reading.value;
  const [{ host, port } = { host: '', port: '' }, ...others] = hosts;
  if (others.length > 0) return { problem: `must name one host: ${form}` };
  const parameters = new URLSearchParams(query);
  if (database === undefined || database === '') return { problem: `must name the database: ${form}` };
  const name = host.replace(/^\[|\]$/g, '') || 'localhost';
  const tls = readTls(parameters);
  if (tls?.verifyHost && isIP(name) > 0) {
    // mysql2 compares the certificate only with host names, not with addresses.
    return {
      problem: `must have the name in the certificate instead of ${name}, or end with ssl_check_hostname=false`,
    };
  }
  return {
    value: {
      host: name,
      port: Number(port || 3306),
      socketPath: parameters.get('unix_socket') ?? undefined,
      user,
      password,
      database,
      tls,
    },
  };
}

const form = 'mysql://user:password@host:port/database';

/** The name of the source, without user and password: messages show it, and an unfinished import is found by it. */
export const nameOfSource = ({ host, port, socketPath, database }: SourceSettings): string => {
  const address = host.includes(':') ? `[${host}]` : host;
  return `mysql://${socketPath ?? `${address}:${port}`}/${database}`;
};

function readTls(parameters: URLSearchParams): SourceTls | undefined {
  const says = (name: string): string => (parameters.get(name) ?? '').toLowerCase();
  const isOn = (name: string): boolean => ['true', '1', 'yes', 'on'].includes(says(name));
  const isOff = (name: string): boolean => ['false', '0', 'no', 'off'].includes(says(name));
  const mode = says('ssl_mode').toUpperCase();
  const named = [...parameters.keys()].some((name) => name.startsWith('ssl_') && name !== 'ssl_mode' && !isOff(name));
  // By default MySQL's clients try encryption, and connect without it if the server has none. That protects nothing, so
  // the default here is no encryption.
  if (mode === 'DISABLED' || (['', 'PREFERRED'].includes(mode) && !named && !isOn('ssl'))) return undefined;
  const caFile = parameters.get('ssl_ca') ?? undefined;
  const verifyCertificate =
    caFile !== undefined || mode.startsWith('VERIFY') || isOn('ssl_verify_cert') || isOn('ssl_verify_identity');
  return {
    caFile,
    certFile: parameters.get('ssl_cert') ?? undefined,
    keyFile: parameters.get('ssl_key') ?? undefined,
    verifyCertificate,
    verifyHost:
      verifyCertificate && mode !== 'VERIFY_CA' && !isOff('ssl_check_hostname') && !isOff('ssl_verify_identity'),
  };
}
