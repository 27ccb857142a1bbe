import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { nodeFlags } from '../support/node_flags.ts';
import { quickStart } from '../support/quick_start.ts';

/** How a process of the service is started. */
export type StartOptions = {
  /** Arguments of Node.js. */
  readonly nodeArguments?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
};

/** The program `placement-api` in a process of its own. */
export type ServiceProcess = {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly ended: Promise<Ending>;
  /** Sends SIGKILL. */
  kill(): Promise<Ending>;
};

/** How a process ended: by `kill`, or by itself with this last output. */
export type Ending = 'killed' | { readonly last: string };

/** A start takes seconds; where the machine is busy, some tens of them. After this time it counts as failed. */
export const mostStartMs = 300_000;

/** A part of the message of the error if a start took longer. Output may follow it. */
const hung = 'it did not listen within five minutes, and was killed';

/** Whether a start failed since it took too long. */
export const isHung = (error: unknown): error is Error => error instanceof Error && error.message.includes(hung);

/**
 * @param onOutput called with what it prints
 * @throws Error if it ends before it listens, or takes too long
 */
export async function startService(
  configFile: string,
  { nodeArguments = [], environment = {} }: StartOptions,
  onOutput: (piece: string) => void,
): Promise<ServiceProcess> {
  const program = path.join(import.meta.dirname, '..', 'bench', 'placement_api_main.ts');
  const child = fork(program, ['--config-file', configFile], {
    execArgv: [...nodeFlags, ...nodeArguments],
    // It runs long: the slower compiler of WebAssembly pays.
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: quickStart.NODE_COMPILE_CACHE, ...environment },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let last = '';
  const listening = Promise.withResolvers<string>();
  for (const stream of [child.stdout, child.stderr]) {
    let begun = '';
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      onOutput(piece);
      last = (last + piece).slice(-8000); // a process without memory prints so much
      begun = (begun + piece).slice(-500);
      const [, url] = /listens on (\S+)\n/.exec(begun) ?? [];
      if (url !== undefined) listening.resolve(url);
    });
  }
  let isKilled = false;
  const ended = once(child, 'close').then(
    ([code, signal]): Ending => (isKilled ? 'killed' : { last: `ended with ${code ?? signal}: ${last}` }),
  );
  const failed = ended.then(() => Promise.reject(new Error(`placement-api did not start: ${last}`)));
  failed.catch(() => {});
  const patience = setTimeout(() => {
    last += hung;
    child.kill('SIGKILL');
  }, mostStartMs);
  const url = await Promise.race([listening.promise, failed]).finally(() => clearTimeout(patience));
  return {
    url,
    pid: child.pid ?? 0,
    ended,
    kill: () => {
      isKilled = true;
      child.kill('SIGKILL');
      return ended;
    },
  };
}
