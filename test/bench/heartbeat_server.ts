import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Engine } from '../engines.ts';
import { freePort } from '../free_port.ts';
import { startPostgresql } from '../postgresql.ts';

/** The service as it is deployed, in a process of its own, and the database that it uses. */
export type ServiceProcess = {
  readonly url: string;
  readonly pid: number;
  /** PostgreSQL's first process, whose children are the others; undefined where the service has the database in itself. */
  readonly databasePid: number | undefined;
  close(): Promise<void>;
};

/** Starts `placement-api` with the registry of services, on a fresh database that survives crashes. */
export async function openServiceProcess(engine: Engine): Promise<ServiceProcess> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-bench-'));
  const postgresql = engine === 'postgresql' ? await startPostgresql({ durable: true }) : undefined;
  const port = await freePort();
  const configFile = path.join(folder, 'placement.conf');
  await writeFile(
    configFile,
    `[api]\nauth_strategy = noauth2\nport = ${port}\n[compute]\nenabled = true\n[placement_database]\n` +
      `sync_on_startup = true\n${postgresql ? `connection = ${postgresql.url}` : `embedded_path = ${folder}/data`}\n`,
  );
  const main = path.join(import.meta.dirname, '..', '..', 'src', 'bin', 'placement-api.ts');
  const child = spawn(process.execPath, [main, '--config-file', configFile], {
    stdio: 'ignore',
  });
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) break;
    if (child.exitCode !== null) throw new Error('The service did not start; run it by itself to see why.');
    await sleep(100);
  }
  return {
    url,
    pid: child.pid ?? 0,
    databasePid: postgresql && (await firstProcess(postgresql.url)),
    close: async () => {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
      await postgresql?.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function firstProcess(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const stat = await readFile(`/proc/${rows[0]?.pid}/stat`, 'latin1');
  await client.end();
  return Number(stat.replace(/^.*\) /s, '').split(' ')[1]);
}
