import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';

/** A program that is started again when it ends, as by a unit of systemd with `Restart=always`. */
export type Unit = {
  readonly name: string;
  /** How often it was started. */
  readonly starts: number;
  /** Sends a signal to the program and all that it started. */
  signal(signal: NodeJS.Signals): Promise<void>;
  stop(): Promise<void>;
};

/** After this time a unit is started again. */
const restartMs = 1_000;

/**
 * Starts a program. Its output goes to a file.
 *
 * @param options.env variables of its environment beside those of this process
 * @param options.others processes that it started and that are not its children any more
 */
export function startUnit(
  name: string,
  logFile: string,
  [program, ...args]: readonly [string, ...string[]],
  {
    others = async () => [],
    env: more = {},
  }: {
    readonly others?: () => Promise<readonly number[]>;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Unit {
  let child: ChildProcess | undefined;
  let isStopped = false;
  let restart: NodeJS.Timeout | undefined;
  let starts = 0;
  const start = (): void => {
    starts += 1;
    const log = openSync(logFile, 'a');
    const env = { ...process.env, OS_API__AUTH_STRATEGY: 'noauth2', ...more };
    child = spawn(program, args, { stdio: ['ignore', log, log], detached: true, env, cwd: '/' });
    closeSync(log);
    child.once('error', (error) => console.error(`${name}: ${error.message}`));
    child.once('exit', () => {
      if (!isStopped) restart = setTimeout(start, restartMs);
    });
  };
  start();
  const signal = async (sent: NodeJS.Signals): Promise<void> => {
    for (const pid of await descendantsOf([child?.pid, ...(await others())].filter((each) => each !== undefined))) {
      try {
        process.kill(pid, sent);
      } catch {
        // it has ended meanwhile
      }
    }
  };
  return {
    name,
    get starts() {
      return starts;
    },
    signal,
    stop: async () => {
      isStopped = true;
      clearTimeout(restart);
      await signal('SIGCONT');
      await signal('SIGKILL');
    },
  };
}

/** Processes and all that they started, also those in sessions of their own. */
async function descendantsOf(roots: readonly number[]): Promise<readonly number[]> {
  const parents = new Map<number, number>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => undefined);
    const [, parent] = /\) \S (\d+)/.exec(stat ?? '') ?? [];
    if (parent !== undefined) parents.set(Number(name), Number(parent));
  }
  const found = new Set(roots);
  for (let before = 0; before < found.size; ) {
    before = found.size;
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}
