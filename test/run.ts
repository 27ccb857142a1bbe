import { readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { run } from 'node:test';
import { inspect } from 'node:util';
import { compileCache } from './compile_cache.ts';
import { count, fileReport, sum, type Totals, totalLine } from './gabbi/report.ts';
import { openMemoryFolder } from './memory_folder.ts';
import { offerPostgresql } from './postgresql_on_demand.ts';

/*
 * All tests: every *.test.ts below test/, three files at a time on two cores, since they wait as much as they compute.
 * Beside them this process runs our gabbi files on both engines. With arguments only the files run whose path contains
 * one of them. Those below test/upstream need programs that the system may lack: they run only if an argument begins
 * with this folder. The last line is `N passed, N failed`. PostgreSQL is started when a test asks for it. SIGINT and
 * SIGTERM end the test files and all servers.
 */

const project = path.join(import.meta.dirname, '..');
const wanted = process.argv.slice(2);
const upstream = 'test/upstream/';
/** Those that take longest begin first. Otherwise one of them may run alone at the end. */
const longest = [
  'client/package',
  'bench/quick',
  'import/import',
  'console/console',
  'documents/contributing',
  'database/statement_timeout',
  'supply_chain/image',
  'upgrades/rolling',
  'workers/workers',
].map((name) => path.join(project, 'test', `${name}.test.ts`));
const shownAtEnd = 10;
const isWanted = (file: string) =>
  file.startsWith(upstream) === wanted.some((part) => part.startsWith(upstream)) &&
  (wanted.length === 0 || wanted.some((part) => file.includes(part)));

// Every file is a process, and many start others.
Object.assign(process.env, compileCache);
const memoryFolder = wanted.length === 0 && process.env.TMPDIR === undefined ? await openMemoryFolder() : undefined;
if (memoryFolder !== undefined) process.env.TMPDIR = memoryFolder;
const interrupted = new AbortController();
// test/watch.ts has one for all runs that it starts.
const postgresql = process.env.TEST_POSTGRESQL_ON_DEMAND === undefined ? await offerPostgresql() : undefined;
if (postgresql !== undefined) process.env.TEST_POSTGRESQL_ON_DEMAND = postgresql.address;
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, async () => {
    interrupted.abort(); // ends the processes of the test files, and with them the servers that they started
    await end();
    process.exit(code);
  });
}
const total = sum(await Promise.all([runTestFiles(), runGabbits()]));
await end();
if (total.passed + total.failed === 0) console.error(`No test was found for ${wanted.join(' ') || 'test/'}.`);
console.log(totalLine(total));
process.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);

async function end(): Promise<void> {
  await postgresql?.stop();
  if (memoryFolder !== undefined) await rm(memoryFolder, { recursive: true, force: true });
}

async function runTestFiles(): Promise<Totals> {
  const files = (await readdir(path.join(project, 'test'), { recursive: true }))
    .filter((file) => file.endsWith('.test.ts') && isWanted(`test/${file}`))
    .toSorted()
    .map((file) => path.join(project, 'test', file))
    .toSorted((one, other) => Number(longest.includes(other)) - Number(longest.includes(one)));
  if (files.length === 0) return sum([]);
  const byFile = new Map<string, Totals>();
  const durations = new Map<string, number>();
  const add = (file: string, more: Partial<Totals>) => {
    byFile.set(file, sum([byFile.get(file) ?? sum([]), { passed: 0, failed: 0, skipped: 0, ...more }]));
  };
  const fail = (file: string, name: string, reason: unknown) => {
    if (interrupted.signal.aborted) return;
    add(file, { failed: 1 });
    const text = reason instanceof Error ? (reason.stack ?? reason.message) : inspect(reason);
    console.log(`  FAILED ${name}\n${text.replace(/^/gm, '    ')}`);
  };
  const stream = run({
    files,
    concurrency: Math.min(8, Math.ceil(1.5 * os.availableParallelism())),
    timeout: 900_000,
    // Only the quick compiler of WebAssembly: few tests run long enough for the code of the slower one to pay.
    execArgv: ['--liftoff-only'],
    signal: interrupted.signal,
  });
  for await (const { type, data } of stream) {
    if (type === 'test:stdout') process.stdout.write(data.message);
    if (type === 'test:stderr') process.stderr.write(data.message);
    if (type === 'test:diagnostic' && data.file !== undefined) console.log(data.message);
    if (type === 'test:summary' && data.file !== undefined) {
      report(data.file, byFile.get(data.file), data.duration_ms);
      durations.set(data.file, data.duration_ms);
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.details.type === 'suite') continue;
    const file = data.file ?? data.name;
    if (data.skip !== undefined || data.todo !== undefined) add(file, { skipped: 1 });
    else if (type === 'test:fail') fail(file, data.name, data.details.error.cause ?? data.details.error);
    // The runner takes a file that tests nothing for a test that passed.
    else if (data.name === file) fail(file, path.relative(project, file), new Error('This file has no test.'));
    else add(file, { passed: 1 });
  }
  if (files.length > shownAtEnd) reportLongest(durations);
  return sum([...byFile.values()]);
}

/** Says which files took longest, with others beside them. */
function reportLongest(durations: ReadonlyMap<string, number>): void {
  const ordered = [...durations].toSorted(([, one], [, other]) => other - one);
  const names = ordered
    .slice(0, shownAtEnd)
    .map(([file, milliseconds]) => `${path.relative(project, file)} ${(milliseconds / 1000).toFixed(0)} s`);
  console.log(`The longest: ${names.join(', ')}`);
}

function report(file: string, totals: Totals | undefined, milliseconds: number): void {
  console.log(
    `${path.relative(project, file)}: ${totalLine(totals ?? sum([]))} (${(milliseconds / 1000).toFixed(1)} s)`,
  );
}

async function runGabbits(): Promise<Totals> {
  const folder = path.join(project, 'gabbits');
  const only = (await readdir(folder)).filter((file) => file.endsWith('.yaml') && isWanted(`gabbits/${file}`));
  if (only.length === 0) return sum([]);
  // They load the whole service, for which a run of other tests need not wait.
  const [{ engines }, { holdToContract }, { runFolder }, { openInProcess }] = await Promise.all([
    import('./engines.ts'),
    import('./gabbi/contract.ts'),
    import('./gabbi/folder.ts'),
    import('./gabbi/in_process.ts'),
  ]);
  const totals: Totals[] = [];
  for (const engine of engines) {
    const results = await runFolder({
      folder,
      only,
      jobs: 2,
      open: openInProcess(engine),
      observe: holdToContract,
      report: (result) => console.log(fileReport(`gabbits on ${engine}:`, result)),
    });
    totals.push(...results.map(({ tests }) => count(tests)));
  }
  return sum(totals);
}
