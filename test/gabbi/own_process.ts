import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Engine } from '../support/engines.ts';
import { quickStart } from '../support/quick_start.ts';
import type { Totals } from './report.ts';

/**
 * Runs test/conformance.ts on one engine, in a process of its own. It prints how each file has ended.
 *
 * @param args of the program
 * @param options.imported the URL of a module that the process imports first
 * @throws Error if it ends without a result
 */
export async function runInOwnProcess(
  args: readonly string[],
  engine: Engine,
  { signal, imported }: { readonly signal?: AbortSignal; readonly imported?: string } = {},
): Promise<Totals> {
  const program = path.join(import.meta.dirname, '..', 'conformance.ts');
  const child = fork(program, [...args, '--engine', engine], {
    env: { ...process.env, ...quickStart },
    ...(signal === undefined ? {} : { signal }),
    ...(imported === undefined ? {} : { execArgv: [...process.execArgv, '--import', imported] }),
  });
  child.on('error', () => {}); // it was ended by the signal, which shows below
  let total: Totals | undefined;
  child.once('message', (message) => {
    total = message as Totals; // what the program sends
  });
  // A message may come after the exit, but not after the disconnection.
  const [[code]] = await Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
  if (total === undefined) throw new Error(`The tests on ${engine} ended with ${code}, without a result.`);
  return total;
}
