import { spawnSync } from 'node:child_process';
import { chown, mkdtemp, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { hasPrograms } from './debian_packages.ts';
import { filledTemplate } from './filled_template.ts';
import { freePort } from './free_port.ts';
import { startKept, unprivilegedOwner } from './kept_process.ts';
import { databaseUrl, execute } from './postgresql.ts';

/** Whether PgBouncer is installed, or can be installed. */
export const hasPgbouncer = (): boolean => hasPrograms(() => versionLine() !== undefined, ['pgbouncer']);

/** Whether this PgBouncer carries prepared statements in transaction mode. */
export function carriesPreparedStatements(): boolean {
  const [, major = '0', minor = '0'] = /^PgBouncer (\d+)\.(\d+)/.exec(versionLine() ?? '') ?? [];
  return Number(major) * 100 + Number(minor) >= 121;
}

function versionLine(): string | undefined {
  const { status, stdout } = spawnSync('pgbouncer', ['--version'], { encoding: 'utf8' });
  return status === 0 ? stdout.split('\n')[0] : undefined;
}

/** A PgBouncer in transaction mode, which ends with this process. */
export type Pgbouncer = {
  /** The URL of the database through it. */
  readonly url: string;
  stop(): Promise<void>;
};

/**
 * Starts PgBouncer by the files of deploy/cluster before a database.
 *
 * @param behind names user and database
 * @param settings used instead of the settings with the same names in pgbouncer.ini
 * @param awaited whether PgBouncer must reach the database before this resolves
 */
export async function startPgbouncer(
  behind: string,
  settings: Readonly<Record<string, string | number>>,
  awaited: 'database' | 'pooler' = 'database',
): Promise<Pgbouncer> {
  const { hostname, port, pathname, username } = new URL(behind);
  const owner = await unprivilegedOwner();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pgbouncer-'));
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const values = {
    FOLDER: folder,
    DATABASE_HOST: hostname,
    DATABASE_PORT: port,
    DATABASE: pathname.slice(1),
    DATABASE_USER: username,
    DATABASE_PASSWORD: 'secret',
    PGBOUNCER_HOST: '127.0.0.1',
    PGBOUNCER_PORT: await freePort(),
  };
  const more = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  await writeFile(
    path.join(folder, 'pgbouncer.ini'),
    [await filledTemplate('cluster/pgbouncer.ini', values), ...more].join(''),
  );
  await writeFile(path.join(folder, 'userlist.txt'), await filledTemplate('cluster/userlist.txt', values));
  const process = startKept(folder, ['pgbouncer', path.join(folder, 'pgbouncer.ini')], { signal: 'TERM', owner });
  const url = `postgresql://${username}:secret@127.0.0.1:${values.PGBOUNCER_PORT}/placement`;
  // The database of this name is PgBouncer's own; the user may not use it, which is an answer as well.
  const isUp = () =>
    execute(databaseUrl(url, 'pgbouncer'), 'show version').catch((error: Error) => {
      if (!('severity' in error)) throw error;
    });
  const answers = awaited === 'database' ? () => execute(url, 'select 1') : isUp;
  if (await process.answers(answers)) return { url, stop: process.stop };
  const log = await process.log();
  await process.stop();
  throw new Error(`PgBouncer did not start. Its log says:\n${log}`);
}
