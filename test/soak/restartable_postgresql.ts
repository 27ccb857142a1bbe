import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { isRunning } from '../bench/processes.ts';
import { unprivilegedOwner } from '../support/kept_process.ts';
import { execute, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { until } from '../support/until.ts';

/** A PostgreSQL server that can be ended at once and started again on its data. */
export type RestartablePostgresql = {
  readonly url: string;
  /** The folder of its data. */
  readonly data: string;
  /** The immediate shutdown: all its processes end at once, and the next start recovers from the log. */
  shutDownAtOnce(): Promise<void>;
  /** The id of its first process. */
  pid(): Promise<number | undefined>;
  /** Starts it again, if it does not run, and waits until it answers. */
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Of the write-ahead log enough is kept for a standby to begin; more does not fit on the small disk. Shared memory is in the folder
 * of the server, and is removed with it: a server that is killed leaves what is in /dev/shm.
 */
export const settings = { wal_keep_size: '64MB', max_wal_size: '128MB', dynamic_shared_memory_type: 'mmap' } as const;

/** Starts a server whose committed data survives. */
export const startRestartable = async (): Promise<RestartablePostgresql> =>
  restartable(await startPostgresql({ durable: true, settings }));

/** @param server whose committed data survives */
export async function restartable(server: PostgresqlServer): Promise<RestartablePostgresql> {
  const { url } = server;
  const data: string = (await execute(url, 'show data_directory')).rows[0].data_directory;
  const command = await readFile(path.join(data, 'postmaster.opts'), 'utf8');
  const owner = await unprivilegedOwner();
  const pid = async (): Promise<number | undefined> => {
    const text = await readFile(path.join(data, 'postmaster.pid'), 'utf8').catch(() => '');
    const found = Number.parseInt(text, 10);
    return Number.isNaN(found) || !isRunning(found) ? undefined : found;
  };
  const signal = async (name: 'SIGQUIT' | 'SIGINT'): Promise<void> => {
    const running = await pid();
    if (running === undefined) return;
    process.kill(running, name);
    await until('PostgreSQL has ended', () => !isRunning(running));
  };
  return {
    url,
    data,
    pid,
    shutDownAtOnce: () => signal('SIGQUIT'),
    start: async (environment = {}) => {
      if ((await pid()) === undefined) {
        // The file has the command as a shell reads it.
        const started = spawn('sh', ['-c', `exec ${command}`], {
          ...owner,
          env: { ...process.env, ...environment },
          cwd: data,
          detached: true,
          stdio: 'ignore',
        });
        started.unref();
      }
      await until('PostgreSQL answers', () =>
        execute(url, 'select 1').then(
          () => true,
          () => false,
        ),
      );
    },
    stop: async () => {
      await signal('SIGINT');
      await server.stop();
    },
  };
}
