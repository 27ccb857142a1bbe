import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, open, readFile, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/free_port.ts';
import { nodeFlags } from '../support/node_flags.ts';

/** `placement-api` as it is deployed, in its own process, which ends with this one. */
export type PlacementApi = { readonly url: string; readonly pid: number; stop(): Promise<void> };

/**
 * Starts it, and waits until it answers.
 *
 * @param database its database: the URL of a PostgreSQL server, or a folder
 * @param options.config more lines of placement.conf
 * @param options.profileFolder a profile of its CPU time is written there when it ends
 * @throws Error with its log if it does not start within a minute
 */
export async function startPlacementApi(
  database: { readonly connection: string } | { readonly embeddedPath: string },
  options: { readonly config?: string; readonly profileFolder?: string } = {},
): Promise<PlacementApi> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-bench-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove); // if this process ends before the server has started
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const configFile = path.join(folder, 'placement.conf');
  const logFile = path.join(folder, 'log');
  await writeFile(
    configFile,
    `[api]\nauth_strategy = noauth2\n${options.config ?? ''}\n[placement_database]\nsync_on_startup = true\n` +
      `${'connection' in database ? `connection = ${database.connection}` : `embedded_path = ${database.embeddedPath}`}\n`,
  );
  const log = await open(logFile, 'w');
  const profile = options.profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profileFolder}`];
  const child = fork(
    path.join(import.meta.dirname, 'placement_api_main.ts'),
    ['--config-file', configFile, '--port', `${port}`],
    { execArgv: [...nodeFlags, ...profile], stdio: ['ignore', log.fd, log.fd, 'ipc'] },
  );
  const ended = once(child, 'exit');
  await log.close();
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const patience = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(patience);
    process.off('exit', remove);
    remove();
  };
  for (const end = Date.now() + 60_000; ; await sleep(10)) {
    if (await answers(url)) return { url, pid: child.pid ?? 0, stop };
    if (Date.now() < end && child.exitCode === null && child.signalCode === null) continue;
    const lines = await readFile(logFile, 'utf8');
    await stop();
    throw new Error(`The service did not start:\n${lines}`);
  }
}

const answers = async (url: string): Promise<boolean> => (await fetch(url).catch(() => undefined))?.ok ?? false;
