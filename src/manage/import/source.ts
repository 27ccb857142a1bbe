import { readFileSync } from 'node:fs';
import mysql from 'mysql2/promise';
import { failureOf } from '../../../db/engine/failure_of.ts';
import { nameOfSource, type SourceSettings, type SourceTls } from './source_url.ts';

/** Every value as the text that the server sends, because upstream's Placement reads these texts. */
export type SourceRow = readonly (string | null)[];

/** A MySQL or MariaDB database as it was at one moment. */
export type Source = {
  /** The name of the source, without user and password. */
  readonly name: string;
  /** Runs a statement inside the snapshot; each `?` stands for a value. @throws Error that names the source */
  query(statement: string, values?: readonly (string | number)[]): Promise<readonly SourceRow[]>;
  close(): void;
};

/**
 * Connects, and begins a transaction that reads the database as it is now. Later writes to the database do not change
 * what it reads.
 *
 * @throws Error with the remedy if the database cannot be reached or read
 */
export async function openSource(settings: SourceSettings): Promise<Source> {
  const name = nameOfSource(settings);
  const connection = await connect(settings).catch((error: unknown) => {
    throw new Error(`The source ${name} cannot be reached: ${failureOf(error)}. ${remedyFor(error)}`, { cause: error });
  });
  // If the connection breaks, the current or the next query fails. Without a handler, the event would end the process.
  connection.on('error', () => {});
  const query: Source['query'] = async (statement, values = []) => {
    try {
      const [rows] = await connection.query({ sql: statement, values: [...values], rowsAsArray: true });
      return rows as unknown as SourceRow[]; // rowsAsArray and typeCast below make them so
    } catch (error) {
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

function remedyFor(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/ACCESS_DENIED|AUTH/.test(code)) {
    return 'Correct user and password; the user needs the privilege SELECT on the database. Special characters in the URL are written as %XX.';
  }
  if (code === 'ER_BAD_DB_ERROR') return 'Correct the name of the database at the end of the URL.';
  const isFile = error instanceof Error && 'syscall' in error && error.syscall === 'open';
  if (isFile || /SSL|TLS|CERT|VERIFY/i.test(code)) return 'Correct the ssl_ parameters at the end of the URL.';
  return 'Start the server, or correct the URL.';
}
