import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';
import { runningTree } from './bench/processes.ts';
import { until } from './support/until.ts';

/** `runningTree` reads /proc. */
const onLinux = process.platform === 'linux';

/** Starts the runner as a user does: without the server of this run, and not as a part of this test. */
function startRun(...files: readonly string[]): ChildProcess {
  const { TEST_POSTGRESQL_ON_DEMAND: _server, NODE_TEST_CONTEXT: _context, ...env } = process.env;
  return spawn(process.execPath, [path.join(import.meta.dirname, 'run.ts'), ...files], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

test('a unit test file runs without a server', async () => {
  const run = startRun('test/unit/import/key_order.test.ts');
  const started = new Set<number>();
  let output = '';
  run.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const look = () => {
    for (const pid of runningTree(run.pid ?? 0)) started.add(pid);
    return run.exitCode !== null;
  };
  await until('the file was run', look);
  assert.match(output, /^1 passed, 0 failed$/m);
  assert.ok(started.size <= 2, `${started.size} processes: the runner and the file`);
});

for (const [signal, wanted] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  test(`${signal} ends the test files and every server that they started`, { skip: !onLinux }, async () => {
    const run = startRun('test/workers/workers.test.ts');
    run.stdout?.resume();
    // The runner, the test file, PostgreSQL and its keeper, the service and its workers.
    let started: readonly number[] = [];
    await until('the servers run', () => {
      started = runningTree(run.pid ?? 0);
      return started.length >= 8;
    });
    run.kill(signal);
    const [code] = await once(run, 'exit');
    assert.equal(code, wanted);
    await until('all have ended', () => started.every((pid) => runningTree(pid).length === 0));
  });
}
