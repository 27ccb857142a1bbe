import { forgetServers } from '../src/client/spoken.ts';

/*
 * A process that runs command lines, one after the other: the programs themselves, with the arguments, the folder, the environment
 * and the output of each command line. Only the first one loads its program. In a process of its own, a command line of `placement`
 * takes 0.2 s of CPU time, and one of `placement-manage` 0.4 s.
 */

/** A command line, with the whole environment that it gets. */
export type CommandLine = {
  readonly program: 'placement' | 'placement-manage' | 'placement-status';
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
};

/** How a command line ended. */
export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };

const output = { stdout: '', stderr: '' };
for (const name of ['stdout', 'stderr'] as const) {
  process[name].setMaxListeners(0); // each command line adds one
  process[name].write = (chunk: Uint8Array | string, ...more: readonly unknown[]) => {
    output[name] += Buffer.from(chunk as string).toString();
    const done = more.findLast((each) => typeof each === 'function');
    if (done !== undefined) process.nextTick(done);
    return true;
  };
}
// Node.js writes them past `process.stderr`.
process.on('warning', ({ message }) => {
  output.stderr += `${message}\n`;
});

let runs = 0;
process.on('message', async (message) => {
  const { program, args, cwd, env } = message as CommandLine; // what hosted_command.ts sends
  Object.assign(output, { stdout: '', stderr: '' });
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...args);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.exitCode = 0;
  process.chdir(cwd);
  forgetServers(); // as a new process, which knows none
  runs += 1;
  await import(`${import.meta.resolve(`../src/bin/${program}.ts`)}?run=${runs}`); // anew each time, but not what it imports
  await new Promise((resolve) => setImmediate(resolve)); // for warnings
  process.send?.({ code: Number(process.exitCode), ...output } satisfies Ended);
});
