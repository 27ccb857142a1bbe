import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/free_port.ts';
import type { FreshDatabase } from '../support/postgresql.ts';
import type { OpenServer } from './folder.ts';
import { keptConnection, send } from './send.ts';

/**
 * Starts the service with a shell command, in which `{port}` and `{config}` (the path of a placement.conf) are filled
 * in. The command must stay in the foreground, answer `GET /` within 30 s, and end on SIGTERM.
 *
 * @param createDatabase makes a fresh database on a PostgreSQL server; without it the configuration names an empty
 * folder for the embedded database
 */
export const openByCommand =
  (command: string, createDatabase?: () => Promise<FreshDatabase>): OpenServer =>
  async ({ config, policy }) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-server-'));
    const database = await createDatabase?.();
    const configFile = path.join(folder, 'etc', 'placement.conf');
    const policyFile = path.join(folder, 'etc', 'policy.yaml');
    await mkdir(path.dirname(configFile));
    await writeFile(policyFile, policyText(policy));
    await writeFile(
      configFile,
      iniText({
        ...config,
        api: { ...config.api, authStrategy: 'noauth2' },
        placementDatabase: {
          ...(database === undefined ? { embeddedPath: path.join(folder, 'data') } : { connection: database.url }),
          syncOnStartup: true,
        },
        osloPolicy: { ...config.osloPolicy, policyFile },
      }),
    );
    const port = await freePort();
    const filled = command.replaceAll('{port}', `${port}`).replaceAll('{config}', configFile);
    const logFile = path.join(folder, 'log');
    const log = await open(logFile, 'w');
    const keeper = spawn('sh', ['-c', keeperScript, filled], { detached: true, stdio: ['pipe', log.fd, log.fd] });
    const url = `http://127.0.0.1:${port}`;
    const close = async () => {
      await stop(keeper);
      await log.close();
      await database?.drop();
      await rm(folder, { recursive: true, force: true });
    };
    if (await answers(url, keeper)) return { url, close };
    const lines = (await readFile(logFile, 'utf8')).split('\n').slice(-30);
    await close();
    throw new Error(`The server did not answer GET ${url}/ with 200: ${filled}\n${lines.join('\n')}`);
  };

async function answers(url: string, keeper: ChildProcess): Promise<boolean> {
  const agent = keptConnection();
  for (const end = Date.now() + 30_000; Date.now() < end && keeper.exitCode === null; await sleep(50)) {
    const request = { method: 'GET', url: `${url}/`, headers: { accept: 'application/json' }, body: '' };
    const response = await send(request, agent).catch(() => undefined);
    if (response?.status !== 200) continue;
    agent.destroy();
    return true;
  }
  agent.destroy();
  return false;
}

/**
 * Runs the command. Sends SIGTERM to its process group when standard input ends. The kernel closes standard input when
 * the parent process has ended.
 */
const keeperScript = `
  trap : TERM
  exec 3<&0
  (cat <&3 > /dev/null; kill -TERM 0) &
  eval "$0" < /dev/null 3<&-
`;

async function stop(keeper: ChildProcess): Promise<void> {
  const { pid } = keeper;
  if (pid === undefined || keeper.exitCode !== null || keeper.signalCode !== null) return;
  const ended = new Promise((resolve) => keeper.once('exit', resolve));
  keeper.stdin?.end();
  const patience = setTimeout(() => process.kill(-pid, 'SIGKILL'), 10_000);
  await ended;
  clearTimeout(patience);
}

/** A policy file in YAML. JSON is a subset of YAML. */
export const policyText = (rules: Readonly<Record<string, string>>): string =>
  Object.keys(rules).length === 0 ? '' : JSON.stringify(rules, undefined, 1);

/** placement.conf as oslo.config reads it. */
function iniText(groups: Readonly<Record<string, Readonly<Record<string, unknown>>>>): string {
  const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const text = (value: unknown) => (value === true ? 'True' : value === false ? 'False' : String(value));
  return Object.entries(groups)
    .map(([group, options]) => {
      const lines = Object.entries(options).map(([name, value]) => `${snakeCase(name)} = ${text(value)}\n`);
      return `[${snakeCase(group)}]\n${lines.join('')}`;
    })
    .join('\n');
}
