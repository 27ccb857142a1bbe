import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inFolder } from '../support/in_folder.ts';
import { execute, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import type { Endured } from './endure/endure.ts';
import { ownServers } from './options.ts';
import { runningTree } from './processes.ts';
import type { Row } from './table.ts';
import { allWorkloads, sharedWorkloads } from './workloads/all.ts';

const benchmark = path.join(import.meta.dirname, 'run.ts');

/** For all but the last test, so that the schema is made once. */
let postgresql: PostgresqlServer;
before(async () => {
  postgresql = await startPostgresql({ durable: true, settings: { max_connections: '400' } });
});
after(() => postgresql?.stop());

/** What run.ts writes. */
type Written = { readonly rows: readonly Row[]; readonly endured?: Endured };

/** Runs the benchmark quickly. @returns its figures */
async function figuresOf(args: readonly string[]): Promise<Written> {
  return inFolder(async (folder) => {
    const file = path.join(folder, 'figures.json');
    const where = ['--postgresql', postgresql.url, '--json', file];
    const child = spawn(process.execPath, [benchmark, '--quick', ...where, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const { code, complaints } = await endOf(child);
    assert.equal(code, 0, complaints);
    const { rows } = await execute(postgresql.url, `select datname from pg_database where datname like 'test%'`);
    assert.deepEqual(rows, [], 'its databases are dropped');
    return JSON.parse(await readFile(file, 'utf8')) as Written; // as run.ts has it
  });
}

const quickly = async (args: readonly string[]): Promise<readonly Row[]> => (await figuresOf(args)).rows;

const serversOf = (rows: readonly Row[], name: string): readonly string[] =>
  rows.filter(({ workload }) => workload === name).map(({ server }) => server);

test('a quick run measures every workload, and the limits', { timeout: 300_000 }, async () => {
  const rows = await quickly(['--own', 'postgresql']);
  for (const { name } of allWorkloads.filter(({ name }) => !name.startsWith('refresh'))) {
    assert.deepEqual(serversOf(rows, name), ['postgresql'], name);
  }
  for (const name of ['refresh', 'L1', 'L2', 'L3', 'L4']) {
    assert.ok(
      rows.some(({ workload }) => workload.startsWith(name)),
      name,
    );
  }
  for (const { workload, medians } of rows) {
    assert.ok(workload.startsWith('L') || (medians.perSecond > 0 && medians.p50Ms > 0), workload);
  }
});

test('a quick run measures every server', { timeout: 300_000 }, async () => {
  const [name, hotSpot] = ['W4 claims, c8', 'W5 hot spot: claims on one provider, c16'];
  const rows = await quickly(['--only', `${name}$|${hotSpot}|W10`]);
  for (const each of [name, hotSpot]) assert.deepEqual(serversOf(rows, each), ownServers, each);
  // It needs SQL.
  const ending = allWorkloads.filter((each) => each.name.startsWith('W10'));
  for (const each of ending) assert.ok(!serversOf(rows, each.name).includes('embedded'));
  for (const { server, medians } of rows.filter(({ workload }) => workload === hotSpot)) {
    assert.match(medians.note ?? '', /^0 answers 409 while there was room/, server);
  }
});

test('a quick run measures several numbers of processes, each with the same load', { timeout: 300_000 }, async () => {
  const rows = await quickly(['--processes', '1,2']);
  for (const { name } of sharedWorkloads) assert.deepEqual(serversOf(rows, name), ['1 process', '2 processes'], name);
  for (const { workload, medians } of rows) assert.ok(medians.operations > 0 && medians.serverCpuMs >= 0, workload);
});

test('a long run compares its beginning with its end', { timeout: 120_000 }, async () => {
  const { endured } = await figuresOf(['--endure', '6s']);
  assert.ok(endured !== undefined);
  for (const part of [endured.first, endured.last]) {
    assert.ok(part.seconds > 1.9, `${part.seconds} s`);
    for (const figure of ['operationsPerSecond', 'pairsPerSecond', 'serverCpuMs', 'databaseCpuMs'] as const) {
      assert.ok(part[figure] > 0, `${figure} is ${part[figure]}`);
    }
    for (const figure of ['walBytesPerPair', 'xidsPerPair', 'residentMb', 'logRows'] as const) {
      assert.ok(part[figure] > 0, `${figure} is ${part[figure]}`);
    }
    assert.ok(part.hotShare > 0 && part.hotShare <= 1, `${part.hotShare} of the updates were HOT`);
    assert.ok(part.tables.some(({ name, tableBytes }) => name === 'allocations' && tableBytes > 0));
    assert.equal(part.deadlocks, 0);
  }
  assert.ok(endured.last.logRows > endured.first.logRows, 'the log goes on');
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
