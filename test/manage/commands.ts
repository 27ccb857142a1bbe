import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import type { Config } from '../../src/config/config.ts';
import { type Engine, freshDatabase, postgresqlServer } from '../support/engines.ts';
import { runHosted } from '../support/hosted_command.ts';
import { endAfterTests } from '../support/leftovers.ts';
import { createDatabase } from '../support/postgresql.ts';
import { quickStart } from '../support/quick_start.ts';
import { fillEmbedded } from '../support/templates.ts';

export type CommandName = 'placement' | 'placement-api' | 'placement-manage' | 'placement-status';

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** One database, commands that are configured for it, and a separate folder in which they run. */
export type CommandWorld = {
  readonly folder: string;
  readonly configFile: string;
  /** The configuration for a service in this process, on the same database. */
  readonly config: Partial<Config['placementDatabase']>;
  /** Runs a command to its end. Commands of the same test file run one after the other, except `placement-api`. */
  run(command: CommandName, ...args: readonly string[]): Promise<Ended>;
  /** Opens the database for the callback. On the embedded engine no command can run at the same time. */
  withDatabase<T>(use: (database: Database) => Promise<T>): Promise<T>;
};

/** The database of a new world: with the schema and the standard names, or empty. */
export type Start = 'migrated' | 'empty';

/** Calls back with a separate world, and removes it at the end. */
export async function withCommands(
  engine: Engine,
  start: Start,
  use: (world: CommandWorld) => Promise<void>,
  moreConfig = '',
): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-commands-'));
  const { config, drop } = await databaseIn(folder, engine, start);
  const configFile = path.join(folder, 'placement.conf');
  const where =
    config.connection === undefined ? `embedded_path = ${config.embeddedPath}` : `connection = ${config.connection}`;
  await writeFile(
    configFile,
    `[placement_database]\n${where}\nmax_retries = 0\n[api]\nauth_strategy = noauth2\nport = 0\n${moreConfig}`,
  );
  const settings =
    config.connection === undefined
      ? { embeddedPath: config.embeddedPath ?? '' }
      : { connection: config.connection, maxPoolSize: 10 };
  try {
    await use({
      folder,
      configFile,
      config,
      run: (command, ...args) => runToEnd(command, ['--config-file', configFile, ...args], folder),
      withDatabase: async (call) => {
        const database = await openDatabase(settings);
        try {
          return await call(database);
        } finally {
          await database.close();
        }
      },
    });
  } finally {
    await killLeftovers();
    await drop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function databaseIn(folder: string, engine: Engine, start: Start) {
  if (engine === 'postgresql') {
    if (start === 'migrated') return freshDatabase(engine);
    const { url, drop } = await createDatabase(await postgresqlServer());
    return { config: { connection: url }, drop };
  }
  const embeddedPath = path.join(folder, 'data');
  if (start === 'migrated') await fillEmbedded(embeddedPath);
  return { config: { connection: undefined, embeddedPath }, drop: async () => {} };
}

const running = new Map<ChildProcess, Promise<unknown>>();

// If a run is interrupted, this process ends before the test can end its commands. These handlers end them.
process.once('SIGTERM', () => process.exit(143));
process.once('exit', () => {
  for (const child of running.keys()) child.kill('SIGTERM');
});

/** Ends the commands that a failed test left running. */
export async function killLeftovers(): Promise<void> {
  for (const child of running.keys()) child.kill('SIGKILL');
  await Promise.allSettled(running.values());
}
endAfterTests(killLeftovers);

/** Starts a command of this project. Its configuration comes only from its arguments and `environment`. */
export function startCommand(
  command: CommandName,
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
) {
  const program = path.join(import.meta.dirname, '..', '..', 'src', 'bin', `${command}.ts`);
  const env = { PATH: process.env.PATH ?? '', HOME: cwd, ...quickStart, ...environment };
  const child = spawn(process.execPath, [program, ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      running.delete(child);
      resolve({ code, stdout, stderr });
    });
  });
  running.set(child, ended);
  return {
    child,
    ended,
    /** Standard error so far. What was written to it before a text on standard output may come after this text. */
    log: (): string => stderr,
    /** Waits for a text on standard output. */
    said: (pattern: RegExp): Promise<RegExpExecArray> =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(stdout);
          if (match !== null) resolve(match);
        };
        child.stdout.on('data', look);
        look();
        ended.then((end) => reject(new Error(`${command} ended: ${JSON.stringify(end)}`)), reject);
      }),
  };
}

/** Runs a command to its end. Commands of the same test file run one after the other, except `placement-api`. */
export function runToEnd(
  command: CommandName,
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  if (command === 'placement-api') return startCommand(command, args, cwd, environment).ended;
  return runHosted({ program: command, args, cwd, env: { PATH: process.env.PATH ?? '', HOME: cwd, ...environment } });
}

/** As `runToEnd`, in a process of its own, which must end by itself. */
export const runAlone = (command: CommandName, args: readonly string[], cwd: string): Promise<Ended> =>
  startCommand(command, args, cwd).ended;
