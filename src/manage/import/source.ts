import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import mysql from 'mysql2/promise';
import { failureOf } from '../../../db/engine/failures.ts';
import { howToContinue } from '../../../db/schema/unfinished_import.ts';
import { splitDatabaseUrl } from '../../config/database_url.ts';
import { ExitError } from '../../text/sysexits.ts';

/** How the connection to the source is encrypted. */
type SourceTls = {
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
 * as in the clients of MySQL.
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

/** Every value as the text that the server sends, because upstream's Placement reads these texts. */
export type SourceRow = readonly (string | null)[];

/** A MySQL or MariaDB database as it was at one moment. */
export type SourceDatabase = {
  /** The name of the source, without user and password. */
  readonly name: string;
  /** Runs a statement inside the snapshot; each `?` is a parameter. @throws Error that names the source */
  query(statement: string, values?: readonly (string | number)[]): Promise<readonly SourceRow[]>;
  close(): void;
};

/**
 * Connects, and begins a transaction that reads the database as it is now. Later writes to the database do not change
 * what it reads.
 *
 * @throws Error with the remedy if the database cannot be reached or read
 */
export async function openSource(settings: SourceSettings): Promise<SourceDatabase> {
  const name = nameOfSource(settings);
  const connection = await connect(settings).catch((error: unknown) => {
    throw connectFailure(name, error);
  });
  // If the connection breaks, the current or the next query fails. Without a handler, the event would end the process.
  connection.on('error', () => {});
  const query: SourceDatabase['query'] = async (statement, values = []) => {
    try {
      const [rows] = await connection.query({ sql: statement, values: [...values], rowsAsArray: true });
      return rows as unknown as SourceRow[]; // rowsAsArray and typeCast below make them so
    } catch (error) {
      const isOpen = await connection.ping().catch(() => false);
      if (!isOpen)
        throw new ExitError(
          `The connection to ${name} broke: ${failureOf(error).replace(/\.$/, '')}. ${howToContinue}`,
          'unavailable',
          error,
        );
      throw new Error(`The source ${name} cannot be read: ${failureOf(error)}.`, { cause: error });
    }
  };
  try {
    await query('set transaction isolation level repeatable read');
    await query('start transaction with consistent snapshot, read only');
  } catch (error) {
    connection.destroy(); // an open connection keeps the process from ending
    throw error;
  }
  return { name, query, close: () => connection.destroy() };
}

async function connect({ host, port, socketPath, user, password, database, tls }: SourceSettings) {
  return mysql.createConnection({
    ...(socketPath === undefined ? { host, port } : { socketPath }),
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { ssl: readFiles(tls) }),
    database,
    charset: 'utf8mb4',
    typeCast: (field) => field.string(),
    connectTimeout: 10_000,
  });
}

const readFiles = ({ caFile, certFile, keyFile, verifyCertificate, verifyHost }: SourceTls) => ({
  ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
  ...(certFile === undefined ? {} : { cert: readFileSync(certFile) }),
  ...(keyFile === undefined ? {} : { key: readFileSync(keyFile) }),
  rejectUnauthorized: verifyCertificate,
  verifyIdentity: verifyHost,
});

/** Why the source cannot be reached, or refuses the login, with the remedy. */
function connectFailure(name: string, error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/ACCESS_DENIED|AUTH/.test(code)) {
    return new ExitError(
      `The source ${name} refuses the login: ${failureOf(error)}. Correct user and password; the user needs the privilege SELECT ` +
        'on the database. Special characters in the URL are written as %XX.',
      'noPermission',
      error,
    );
  }
  return new Error(`The source ${name} cannot be reached: ${failureOf(error)}. ${remedyFor(error, code)}`, {
    cause: error,
  });
}

function remedyFor(error: unknown, code: string): string {
  if (code === 'ER_BAD_DB_ERROR') return 'Correct the name of the database at the end of the URL.';
  const isFile = error instanceof Error && 'syscall' in error && error.syscall === 'open';
  if (isFile || /SSL|TLS|CERT|VERIFY/i.test(code)) return 'Correct the ssl_ parameters at the end of the URL.';
  return 'Start the server, or correct the URL.';
}
