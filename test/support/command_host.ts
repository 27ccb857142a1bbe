import { forgetServers } from '../../src/client/version_request.ts';

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
  process[name].isTTY = false; // also where a test file runs in a terminal
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

/** How long a command line may take to end by itself after its program has returned, in milliseconds. */
const patienceMs = 20_000;

/**
 * Waits until nothing of a command line is left that would keep a process of its own alive.
 *
 * @param before how many such resources this process has itself
 */
async function wouldEnd(before: number): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1).unref()); // also for warnings
    const left = process.getActiveResourcesInfo();
    if (left.length <= before) return;
    if (performance.now() - startedMs > patienceMs) throw new Error(`It does not end by itself: ${left.join(', ')}`);
  }
}

let runs = 0;
process.on('message', async (message) => {
  const before = process.getActiveResourcesInfo().length;
  const { program, args, cwd, env } = message as CommandLine; // what hosted_command.ts sends
  Object.assign(output, { stdout: '', stderr: '' });
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...args);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.exitCode = 0;
  process.chdir(cwd);
  forgetServers(); // as a new process, which knows none
  runs += 1;
  await import(`${import.meta.resolve(`../../src/bin/${program}.ts`)}?run=${runs}`); // loaded again each time, without its imports
  await wouldEnd(before);
  process.send?.({ code: Number(process.exitCode), ...output } satisfies Ended);
});
