import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The user and group that a program runs as. */
export type Owner = { readonly uid: number; readonly gid: number };

/**
 * A server of another project. It ends when this process ends for any reason (also SIGKILL), and does not keep this
 * process alive.
 */
export type KeptProcess = {
  /**
   * Calls `ask` until it no longer throws. @returns false if the server ended, or if it took longer than half a minute
   */
  answers(ask: () => Promise<unknown>): Promise<boolean>;
  /** The output of the server. */
  log(): Promise<string>;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
};

/**
 * Starts a program in a folder, which `stop` removes.
 *
 * @param options.signal the signal that ends the program
 */
export function startKept(
  folder: string,
  [program, ...args]: readonly [string, ...string[]],
  options: { readonly signal: 'INT' | 'TERM'; readonly owner?: Owner | undefined; readonly env?: NodeJS.ProcessEnv },
): KeptProcess {
  const keeper = spawn('sh', ['-c', keeperScript, folder, options.signal, program, ...args], {
    ...options.owner,
    ...(options.env === undefined ? {} : { env: options.env }),
    cwd: folder,
    detached: true, // so that Ctrl-C reaches the tests only, and the keeper can clean up
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  keeper.unref();
  unrefStream(keeper.stdin);
  return {
    answers: async (ask) => {
      for (const end = Date.now() + 30_000; Date.now() < end && keeper.exitCode === null; await sleep(20)) {
        try {
          await ask();
          return true;
        } catch {
          // not yet
        }
      }
      return false;
    },
    log: () => readFile(path.join(folder, 'log'), 'utf8').catch(() => ''),
    stop: () => stop(keeper),
  };
}

/** The user for servers that refuse to run as root. Undefined if this process is not root. */
export async function unprivilegedOwner(): Promise<Owner | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const users = await readFile('/etc/passwd', 'utf8');
  const fields = users
    .split('\n')
    .find((line) => line.startsWith('nobody:'))
    ?.split(':');
  return { uid: Number(fields?.[2] ?? 65534), gid: Number(fields?.[3] ?? 65534) };
}

/** Waits for the end of its standard input. The kernel closes it when the parent process has ended. */
const keeperScript = `
  folder=$0 signal=$1
  shift
  "$@" > "$folder/log" 2>&1 &
  server=$!
  cat > /dev/null
  kill "-$signal" "$server"
  wait "$server"
  cd / && rm -rf "$folder"
`;

async function stop(keeper: ChildProcess): Promise<void> {
  if (keeper.exitCode !== null || keeper.signalCode !== null) return;
  keeper.ref();
  await new Promise<void>((resolve) => {
    keeper.once('exit', () => resolve());
    keeper.stdin?.end();
  });
}

/** A pipe of a child process is a socket, although its declared type is not. */
function unrefStream(stream: unknown): void {
  if (stream instanceof net.Socket) stream.unref();
}
