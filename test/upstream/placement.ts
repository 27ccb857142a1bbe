import { execFile } from 'node:child_process';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Client, openClient, succeed } from '../races/client.ts';
import { freePort } from '../support/free_port.ts';
import { startKept, unprivilegedOwner } from '../support/kept_process.ts';

/** OpenStack Placement itself, as Debian packages it, on a database. */
export type Upstream = {
  readonly url: string;
  readonly client: Client;
  stop(): Promise<void>;
};

/** Runs a command of upstream to its end. @returns its output @throws Error if its exit code is not 0 */
export async function runUpstream(
  command: 'placement-manage' | 'placement-status',
  databaseUrl: string,
  ...args: readonly string[]
): Promise<string> {
  const folder = await folderWithConfig(databaseUrl);
  try {
    const configured = ['--config-file', path.join(folder, 'placement.conf'), ...args];
    return (await promisify(execFile)(`/usr/bin/${command}`, configured, { cwd: folder })).stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Brings an empty database to a revision of upstream's schema with upstream's own migrations, as an older release
 * would.
 */
export async function upstreamDbSyncTo(databaseUrl: string, revision: string): Promise<void> {
  const folder = await folderWithConfig(databaseUrl);
  try {
    const configured = [path.join(folder, 'placement.conf'), revision];
    await promisify(execFile)('/usr/bin/python3', ['-c', upgradeTo, ...configured], { cwd: folder });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** `placement-manage db sync` knows only the newest revision. This does the same for others. */
const upgradeTo = `
import sys
from oslo_config import cfg
from placement import conf, db_api
from placement.db.sqlalchemy import migration
config = cfg.ConfigOpts()
conf.register_opts(config)
config(['--config-file', sys.argv[1]], project='placement', default_config_files=None)
db_api.configure(config)
migration.upgrade(sys.argv[2])
`;

/** Makes upstream's schema in an empty database. */
export const upstreamDbSync = (databaseUrl: string): Promise<string> =>
  runUpstream('placement-manage', databaseUrl, 'db', 'sync');

/**
 * Serves the API under gunicorn on a free port of 127.0.0.1, until this process ends.
 *
 * @throws Error with the log if it does not start
 */
export async function startUpstream(databaseUrl: string): Promise<Upstream> {
  const folder = await folderWithConfig(databaseUrl);
  const port = await freePort();
  const command = [
    'gunicorn',
    '--bind',
    `127.0.0.1:${port}`,
    '--workers',
    '2',
    '--threads',
    '4',
    '--keep-alive',
    '60',
  ] as const;
  const server = startKept(folder, [...command, '--timeout', '300', 'placement.wsgi:init_application()'], {
    signal: 'TERM',
    owner: await unprivilegedOwner(),
    env: { PATH: process.env.PATH, HOME: folder, OS_PLACEMENT_CONFIG_DIR: folder },
  });
  const url = `http://127.0.0.1:${port}`;
  const client = openClient(url);
  const stop = async (): Promise<void> => {
    client.close();
    await server.stop();
  };
  if (await server.answers(() => succeed(client, 'GET', '/resource_providers', 39))) return { url, client, stop };
  const log = await server.log();
  await stop();
  throw new Error(`OpenStack Placement did not start. Its log says:\n${log}`);
}

async function folderWithConfig(databaseUrl: string): Promise<string> {
  const owner = await unprivilegedOwner();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'upstream-'));
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const connection = databaseUrl.replace(/^postgresql:/, 'postgresql+psycopg2:');
  await writeFile(
    path.join(folder, 'placement.conf'),
    `[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = ${connection}\n`,
  );
  return folder;
}
