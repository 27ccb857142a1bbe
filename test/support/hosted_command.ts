import { type ChildProcess, fork } from 'node:child_process';
import path from 'node:path';
import type { CommandLine, Ended } from './command_host.ts';
import { quickStart } from './quick_start.ts';

/** A command line may take this long, in milliseconds: on a busy machine an import takes minutes. */
const limitMs = 300_000;

let host: ChildProcess | undefined;
let latest: Promise<unknown> = Promise.resolve();

/** Runs a command line to its end, in a process that runs all of them of a test file, in turn. */
export function runHosted(line: CommandLine): Promise<Ended> {
  const ended = latest.then(() => runInHost(line));
  latest = ended.catch(() => {});
  return ended;
}

function runInHost(line: CommandLine): Promise<Ended> {
  host ??= fork(path.join(import.meta.dirname, 'command_host.ts'), {
    execArgv: [],
    env: { PATH: process.env.PATH, ...quickStart },
  });
  const running = host;
  return new Promise<Ended>((resolve, reject) => {
    const tooLong = setTimeout(() => running.kill('SIGKILL'), limitMs);
    const lost = () => {
      clearTimeout(tooLong);
      host = undefined;
      reject(
        new Error(`"${line.program} ${line.args.join(' ')}" ended its process, or took more than ${limitMs / 1000} s.`),
      );
    };
    running.once('exit', lost);
    running.once('message', (message) => {
      clearTimeout(tooLong);
      running.off('exit', lost);
      // Between two command lines it does not keep this process alive.
      running.unref();
      running.channel?.unref();
      resolve(message as Ended); // what command_host.ts sends
    });
    running.ref();
    running.channel?.ref();
    running.send(line);
  });
}
