import { execFile } from 'node:child_process';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import mysql from 'mysql2/promise';
import { freePort } from '../support/free_port.ts';
import { startKept, unprivilegedOwner } from '../support/kept_process.ts';

/** A password with characters that must be escaped in a URL. */
const password = 'p@ss/w:rd?';

/** A MariaDB server that was started for tests, on 127.0.0.1. */
export type Mariadb = {
  readonly port: number;
  /** Runs statements as root, in a database. */
  execute(database: string, ...statements: readonly string[]): Promise<readonly (readonly unknown[])[]>;
  /** Creates a database. @returns its URL as upstream's configuration has it, with user and password */
  createDatabase(name: string): Promise<string>;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
};

/** The URL of a database on the server, for the user `placement`. */
const mariadbUrl = ({ port }: Mariadb, database: string): string =>
  `mysql+pymysql://placement:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}?charset=utf8`;

/** Texts that must never be printed: the password in each of its spellings. */
export const passwordSpellings: readonly string[] = [password, encodeURIComponent(password)];

/**
 * Starts the MariaDB server of the system on fresh data in a temporary folder. It runs as `nobody` if this process is
 * root. It ends with this process.
 *
 * @param certificate PEM, for encrypted connections
 * @throws Error with the server's log if it does not start
 */
export async function startMariadb(certificate?: { readonly cert: string; readonly key: string }): Promise<Mariadb> {
  const owner = await unprivilegedOwner();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'mariadb-'));
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const data = path.join(folder, 'data');
  const install = ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'];
  await promisify(execFile)('mariadb-install-db', install, { ...owner, cwd: folder }).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  const tls: string[] = [];
  for (const [name, text] of Object.entries(certificate ?? {})) {
    const file = path.join(folder, `${name}.pem`);
    await writeFile(file, text);
    tls.push(`--ssl-${name}=${file}`);
  }
  const port = await freePort();
  const socketPath = path.join(folder, 'socket');
  const settings = ['--no-defaults', `--datadir=${data}`, `--port=${port}`, '--bind-address=127.0.0.1'];
  const fast = ['--innodb-flush-log-at-trx-commit=0', '--innodb-buffer-pool-size=128M', '--skip-log-bin'];
  const server = startKept(folder, ['mariadbd', ...settings, `--socket=${socketPath}`, ...fast, ...tls], {
    signal: 'TERM',
    owner,
  });
  const execute: Mariadb['execute'] = async (database, ...statements) => {
    const connection = await mysql.createConnection({ socketPath, user: 'root', database, rowsAsArray: true });
    try {
      let rows: unknown = [];
      for (const statement of statements) [rows] = await connection.query(statement);
      return Array.isArray(rows) ? rows : [];
    } finally {
      await connection.end();
    }
  };
  if (!(await server.answers(() => execute('mysql', 'select 1')))) {
    const log = await server.log();
    await server.stop();
    throw new Error(`MariaDB did not start. Its log says:\n${log}`);
  }
  await execute(
    'mysql',
    `create user placement@'%' identified by '${password}'`,
    `grant all privileges on \`cloud%\`.* to placement@'%'`,
  );
  const mariadb: Mariadb = {
    port,
    execute,
    createDatabase: async (name) => {
      await execute('mysql', `create database ${name} character set utf8`);
      return mariadbUrl(mariadb, name);
    },
    stop: server.stop,
  };
  return mariadb;
}
