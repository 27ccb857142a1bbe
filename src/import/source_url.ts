import { isIP } from 'node:net';
import { splitDatabaseUrl } from '../config/database_url.ts';

/** How the connection to the source is encrypted. */
export type SourceTls = {
  /** PEM files. */
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly verifyCertificate: boolean;
  /** Whether the certificate must be of the host that was asked. */
  readonly verifyHost: boolean;
};

/** A MySQL or MariaDB database to import from. */
export type SourceSettings = {
  readonly host: string;
  readonly port: number;
  /** The path of a socket, instead of host and port. */
  readonly socketPath: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string;
  /** Undefined for a connection that is not encrypted. */
  readonly tls: SourceTls | undefined;
};

/**
 * Reads the URL of upstream's database as SQLAlchemy writes it for PyMySQL, mysqlclient and others: the driver is dropped, and
 * so are parameters of the query that concern the driver alone (`charset`: texts are read as Unicode whatever it says).
 *
 * `ssl_ca`, `ssl_cert`, `ssl_key` and `ssl_check_hostname` mean what they mean to PyMySQL, `ssl_mode` what it means to MySQL's
 * own clients.
 */
export function readSourceUrl(text: string): { readonly value: SourceSettings } | { readonly problem: string } {
  const reading = splitDatabaseUrl(text, form, ['mysql', 'mariadb']);
  if ('problem' in reading) return reading;
  const { host, port, user, password, database, query } = reading.value;
  const parameters = new URLSearchParams(query);
  if (database === undefined || database === '') return { problem: `must name the database: ${form}` };
  const name = host.replace(/^\[|\]$/g, '') || 'localhost';
  const tls = readTls(parameters);
  if (tls?.verifyHost && isIP(name) > 0) {
    // mysql2 compares the certificate with names only.
    return {
      problem: `must have the name in the certificate instead of ${name}, or end with ssl_check_hostname=false`,
    };
  }
  return {
    value: {
      host: name,
      port: port ?? 3306,
      socketPath: parameters.get('unix_socket') ?? undefined,
      user,
      password,
      database,
      tls,
    },
  };
}

const form = 'mysql://user:password@host:port/database';

/** The source for people, and by which it is known again: without user and password. */
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
  // MySQL's clients try encryption without being asked, and do without where the server has none: that is no protection.
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
