import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import path from 'node:path';
import { offerPostgresql } from './support/postgresql_on_demand.ts';

/*
 * Runs tests, with the arguments of test/run.ts, and runs them again whenever a file of the project changes. A run that
 * is in progress at a change is ended. All runs use one PostgreSQL server. Ctrl-C ends the program.
 */

const project = path.join(import.meta.dirname, '..');
const folders = ['src', 'db', 'test', 'gabbits'];
const postgresql = await offerPostgresql();
process.env.TEST_POSTGRESQL_ON_DEMAND = postgresql.address;

/** Resolves at the next change. Then the caller replaces it. */
let change = Promise.withResolvers<void>();
for (const folder of folders) {
  watch(path.join(project, folder), { recursive: true }, () => change.resolve());
}

let run: ChildProcess | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await end(run);
    await postgresql.stop();
    process.exit();
  });
}

for (;;) {
  change = Promise.withResolvers();
  run = spawn(process.execPath, [path.join(import.meta.dirname, 'run.ts'), ...process.argv.slice(2)], {
    stdio: 'inherit',
    detached: true, // otherwise Ctrl-C would reach it as well
  });
  const ended = once(run, 'exit');
  await Promise.race([ended, change.promise]);
  if (run.exitCode !== null) console.log('Waiting for a change. Ctrl-C ends this.');
  await change.promise;
  await end(run);
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}
