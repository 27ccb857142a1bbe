import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ownServers } from './options.ts';
import { runningTree } from './processes.ts';
import type { Row } from './table.ts';
import { allWorkloads } from './workloads/all.ts';

const benchmark = path.join(import.meta.dirname, 'run.ts');

test('a quick run measures every workload on every server, and the limits', { timeout: 300_000 }, async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'bench-test-'));
  try {
    const file = path.join(folder, 'figures.json');
    const child = spawn(process.execPath, [benchmark, '--quick', '--json', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const { code, complaints } = await endOf(child);
    assert.equal(code, 0, complaints);
    // What run.ts writes.
    const { rows } = JSON.parse(await readFile(file, 'utf8')) as { readonly rows: readonly Row[] };
    for (const { name } of allWorkloads.filter(({ name }) => !name.startsWith('refresh'))) {
      const measured = rows.filter(({ workload }) => workload === name);
      assert.deepEqual(
        measured.map(({ server }) => server),
        ownServers.filter((server) => server !== 'embedded' || !name.startsWith('W10')), // it needs SQL
        name,
      );
      assert.ok(
        measured.every(({ medians }) => medians.perSecond > 0 && medians.p50Ms > 0),
        name,
      );
    }
    assert.ok(rows.some(({ workload }) => workload.startsWith('refresh')));
    for (const limit of ['L1', 'L2', 'L3'])
      assert.ok(
        rows.some(({ workload }) => workload.startsWith(limit)),
        limit,
      );
    for (const { server, medians } of rows.filter(({ workload }) => workload.startsWith('W5'))) {
      assert.match(medians.note ?? '', /^0 answers 409 while there was room/, server);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('Ctrl-C ends the benchmark and every process that it started', { timeout: 120_000 }, async () => {
  const child = spawn(process.execPath, [benchmark, '--own', 'postgresql', '--sizes', '100', '--seconds', '60'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const measuring = Promise.withResolvers<void>();
  child.stdout.on('data', (chunk: Buffer) => {
    if (chunk.includes('W7')) measuring.resolve();
  });
  await Promise.race([measuring.promise, once(child, 'exit')]);
  const [, ...started] = runningTree(child.pid ?? 0);
  assert.ok(started.length >= 2, 'a database and a server were started');
  child.kill('SIGINT');
  const [code] = await once(child, 'exit');
  assert.equal(code, 130);
  const left = () => started.filter((pid) => runningTree(pid).length > 0);
  for (const end = Date.now() + 10_000; Date.now() < end && left().length > 0; ) await sleep(50);
  assert.deepEqual(left(), []);
});

async function endOf(child: ChildProcess): Promise<{ readonly code: unknown; readonly complaints: string }> {
  let complaints = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    complaints += chunk;
  });
  const [code] = await once(child, 'exit');
  return { code, complaints };
}
