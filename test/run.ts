import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { run } from 'node:test';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import pg from 'pg';
import { type Batch, lanesOf, writeEntry } from './batches.ts';
import { commandLine, cpuMs, runningTree } from './bench/processes.ts';
import { runInOwnProcess } from './gabbi/own_process.ts';
import { sum, type Totals, totalLine } from './gabbi/report.ts';
import { beginNoting, reportStatements } from './statements/report.ts';
import { useMemoryFolder } from './support/memory_folder.ts';
import { askForPostgresql, offerPostgresql } from './support/postgresql_on_demand.ts';
import { quickStart } from './support/quick_start.ts';
import { succeedsWithin } from './support/until.ts';

/*
 * All tests: every *.test.ts below test/, in processes and lanes by test/batches.ts, and our gabbi files on both engines. With arguments only the files run whose path contains
 * one of them. Those below test/upstream need programs that the system may lack: they run only if an argument begins
 * with this folder. The last line is `N passed, N failed`. PostgreSQL is started when a test asks for it. SIGINT and
 * SIGTERM end the test files and all servers.
 */

const project = path.join(import.meta.dirname, '..');
const wanted = process.argv.slice(2);
const upstream = 'test/upstream/';
const urlOf = (file: string): string => pathToFileURL(path.join(project, 'test', file)).href;
/** Notes the statements that a process runs. */
const recorder = urlOf('statements/recorded.ts');
/** What the process of a batch imports first. */
const preloaded = ['--import', urlOf('support/unfollowed_promises.ts'), '--import', recorder];
const shownAtEnd = 10;
/** A batch of which no test ends for so long hangs, and gabbi files on an engine that take longer. The slowest take some 3 minutes on 2 cores. */
const hangsMs = 600_000;
const isWanted = (file: string) =>
  file.startsWith(upstream) === wanted.some((part) => part.startsWith(upstream)) &&
  (wanted.length === 0 || wanted.some((part) => file.includes(part)));

/** Which batches have ended, and what each computed with all that it started. The server of all tests is none of it. */
const computed: { readonly name: string; readonly ms: number }[] = [];

// Every file is a process, and many start others.
Object.assign(process.env, quickStart);
const removeMemoryFolder = await useMemoryFolder();
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
const startedMs = performance.now();
const total = await runAll();
await end();
reportTime(performance.now() - startedMs);
if (total.passed + total.failed === 0) console.error(`No test was found for ${wanted.join(' ') || 'test/'}.`);
console.log(totalLine(total));
process.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);

async function end(): Promise<void> {
  await postgresql?.stop();
  await removeMemoryFolder();
}

/** What one worker of a lane does at a time. */
type Job = () => Promise<readonly FileEnd[]>;

async function runAll(): Promise<Totals> {
  const files = (await readdir(path.join(project, 'test'), { recursive: true }))
    .map((file) => `test/${file}`)
    .filter((file) => file.endsWith('.test.ts') && isWanted(file))
    .toSorted();
  const gabbits = (await readdir(path.join(project, 'gabbits')))
    .filter((file) => file.endsWith('.yaml') && isWanted(`gabbits/${file}`))
    .toSorted();
  const { waiting, computing } = lanesOf(files);
  const cores = os.availableParallelism();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-batches-'));
  beginNoting(folder);
  process.env.TEST_STATEMENTS = folder;
  try {
    const jobOf = (batch: Batch) => () => runBatch(batch, folder);
    // The gabbi files take longest. A test that computes waits as well, for a browser or another process.
    const results = await Promise.all([
      runLane(waiting.map(jobOf), 2 * cores),
      runLane([...gabbitJobs(gabbits), ...computing.map(jobOf)], cores + 2),
    ]);
    const ends = results.flat();
    if (ends.length > shownAtEnd) reportLongest(ends);
    return sum([...ends.map(({ totals }) => totals), reportStatements(folder, wanted.length === 0)]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs jobs in their order, so many at a time. */
async function runLane(jobs: readonly Job[], atATime: number): Promise<readonly FileEnd[]> {
  const queue = jobs.values();
  const worker = async (): Promise<readonly FileEnd[]> => {
    const ends: FileEnd[] = [];
    // All workers share the iterator, so that each job is done once.
    for (const job of queue) if (!interrupted.signal.aborted) ends.push(...(await job()));
    return ends;
  };
  return (await Promise.all(Array.from({ length: atATime }, worker))).flat();
}

/** Runs our gabbi files on each engine; those on the embedded one, where each makes a database, in two parts. */
function gabbitJobs(files: readonly string[]): readonly Job[] {
  const parts = [
    ['embedded', files.filter((_, index) => index % 2 === 0)],
    ['embedded', files.filter((_, index) => index % 2 === 1)],
    ['postgresql', files],
  ] as const;
  return parts
    .filter(([, members]) => members.length > 0)
    .map(([engine, members]) => async () => {
      const started = performance.now();
      const only = members.flatMap((file) => ['--only', file]);
      const args = [path.join(project, 'gabbits'), ...only];
      const signal = AbortSignal.any([interrupted.signal, AbortSignal.timeout(hangsMs)]);
      const totals = await runInOwnProcess(args, engine, { signal, imported: recorder }).catch((error: unknown) => {
        if (!interrupted.signal.aborted) console.log(`  FAILED gabbits\n    ${error}`);
        return { passed: 0, failed: 1, skipped: 0 };
      });
      return [{ file: `gabbits on ${engine}`, totals, ms: performance.now() - started }];
    });
}

/** How the tests of a file have ended. */
type FileEnd = { readonly file: string; readonly totals: Totals; readonly ms: number };

/** Runs the files of a batch in one process, and reports each of them. */
async function runBatch({ name, files }: Batch, folder: string): Promise<readonly FileEnd[]> {
  const ends: FileEnd[] = [];
  let totals = sum([]);
  const add = (more: Partial<Totals>) => {
    totals = sum([totals, { passed: 0, failed: 0, skipped: 0, ...more }]);
  };
  const fail = (title: string, reason: unknown) => {
    if (interrupted.signal.aborted) return;
    add({ failed: 1 });
    const text =
      reason instanceof Error
        ? (reason.stack ?? reason.message)
        : typeof reason === 'string'
          ? reason
          : inspect(reason);
    console.log(`  FAILED ${title}\n${text.replace(/^/gm, '    ')}`);
  };
  const end = (file: string, ms: number) => {
    console.log(`${file}: ${totalLine(totals)} (${(ms / 1000).toFixed(1)} s)`);
    ends.push({ file, totals, ms });
    totals = sum([]);
  };
  const started = performance.now();
  const entry = await writeEntry(files, project, folder);
  const stream = run({
    files: [entry],
    execArgv: [...reporting(folder), ...preloaded],
    signal: interrupted.signal,
  });
  let last = 'no test';
  const hangs = setTimeout(async () => {
    // The process, or the server, may have just ended.
    const left = await Promise.all(
      [resourcesOf(entry, folder), longStatements()].map((lines) => lines.catch((error: unknown) => [String(error)])),
    );
    const ended = killProcessOf(entry).map((line) => `  ${line.slice(-200)}\n`);
    const keeping = `It is kept by:\n${left
      .flat()
      .map((line) => `  ${line}\n`)
      .join('')}`;
    fail(
      name,
      `It hangs: no test has ended for ${hangsMs / 1000} s, the last is ${last}. ${keeping}Killed:\n${ended.join('')}`,
    );
  }, hangsMs);
  for await (const { type, data } of stream) {
    if (type === 'test:stdout') process.stdout.write(data.message);
    if (type === 'test:stderr') process.stderr.write(data.message);
    if (type === 'test:diagnostic' && data.file !== undefined) console.log(data.message);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    hangs.refresh();
    const error = type === 'test:fail' ? data.details.error : undefined;
    const reason = error?.cause ?? error;
    last = data.name;
    const isSuite = data.details.type === 'suite';
    // Of a suite that failed only because of its tests, the tests were reported.
    if (isSuite && error !== undefined && failureType(error) !== 'subtestsFailed') fail(data.name, reason);
    // Events come in the order of the tests, so what came since the last suite of a file belongs to this one.
    const file = files[ends.length];
    if (data.nesting === 0 && file !== undefined && data.name === file) {
      if (totals.passed + totals.failed + totals.skipped === 0) fail(file, 'This file has no test.');
      end(file, data.details.duration_ms);
    } else if (isSuite) {
    } else if (data.skip !== undefined || data.todo !== undefined) add({ skipped: 1 });
    // Without nesting it is the process itself: after its last test, for example.
    else if (error !== undefined) fail(data.nesting === 0 ? files.join(', ') : data.name, reason);
    else if (data.nesting > 0) add({ passed: 1 });
  }
  clearTimeout(hangs);
  for (const file of files.slice(ends.length)) {
    if (totals.failed === 0) fail(file, 'The process of its batch ended before it.');
    end(file, performance.now() - started);
  }
  if (totals.failed > 0) ends.push({ file: files.join(', '), totals, ms: 0 });
  const ms = Number(await readFile(`${entry}.cpu`, 'utf8').catch(() => Number.NaN));
  if (!Number.isNaN(ms)) computed.push({ name, ms });
  return ends;
}

/** The process of a batch, which runs this module. */
function processOf(entry: string): number | undefined {
  return runningTree(process.pid).find((pid) => commandLine(pid).includes(entry));
}

/** With these flags Node.js writes at SIGUSR2 what keeps a process, and where it is, into a file in this folder. */
function reporting(folder: string): readonly string[] {
  return ['--report-on-signal', '--report-exclude-network', `--report-directory=${folder}`];
}

/** What is used here of such a report. */
type Report = {
  readonly javascriptStack: { readonly stack?: readonly string[] };
  readonly libuv: readonly { readonly is_active?: boolean; readonly is_referenced?: boolean }[];
};

/** What keeps the process of a batch from ending, and where it computes. A process that was stopped tells nothing. */
async function resourcesOf(entry: string, folder: string): Promise<readonly string[]> {
  const pid = processOf(entry);
  if (pid === undefined) return ['nothing: the process has ended'];
  process.kill(pid, 'SIGUSR2');
  const isReport = (file: string): boolean => file.startsWith('report.') && file.includes(`.${pid}.`);
  let report: Report | undefined;
  await succeedsWithin(20_000, async () => {
    try {
      const file = (await readdir(folder)).find(isReport);
      if (file !== undefined) report = JSON.parse(await readFile(path.join(folder, file), 'utf8'));
    } catch {} // it is being written
    return report !== undefined;
  });
  if (report === undefined) return ['it does not tell'];
  const held = report.libuv.filter((each) => each.is_active === true && each.is_referenced === true);
  return [...held.map((each) => JSON.stringify(each)), ...(report.javascriptStack.stack ?? [])];
}

/** The statements of all tests that PostgreSQL has worked on, or kept a transaction open after, for 10 s. */
async function longStatements(): Promise<readonly string[]> {
  if (postgresql === undefined) return [];
  const client = new pg.Client({ connectionString: await askForPostgresql(postgresql.address) });
  await client.connect();
  try {
    const { rows } = await client.query<{ line: string }>(
      `select concat_ws(' ', datname, pid, state, wait_event_type, wait_event, now() - query_start, left(query, 300)) as line
       from pg_stat_activity where state <> 'idle' and query_start < now() - interval '10 s' order by query_start`,
    );
    return rows.map(({ line }) => `PostgreSQL: ${line}`);
  } finally {
    await client.end();
  }
}

/**
 * Kills the process of a batch and all that it started: a service that a test opened in it may have taken over SIGTERM, and a server that
 * continues keeps its output open.
 *
 * @param entry the module that the process runs
 * @returns the command lines of the processes
 */
function killProcessOf(entry: string): readonly string[] {
  const root = processOf(entry);
  const pids = root === undefined ? [] : runningTree(root);
  const lines = pids.map(commandLine);
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {} // it has ended
  }
  return lines;
}

/** Why a test failed, in the words of the runner of Node.js, which its types do not name. */
function failureType(error: Error): unknown {
  return 'failureType' in error ? error.failureType : undefined;
}

/** Says how long the run took, and where the system tells it, how long it computed. */
function reportTime(wallMs: number): void {
  const cpu = cpuMs([process.pid]);
  const computed = Number.isNaN(cpu) ? '' : `, of CPU time ${(cpu / 1000).toFixed(0)} s`;
  console.log(`The tests took ${(wallMs / 1000).toFixed(0)} s${computed}.`);
}

/** Says which files took longest, with others beside them, and which batches computed most. */
function reportLongest(ends: readonly FileEnd[]): void {
  const most = (all: readonly { readonly name: string; readonly ms: number }[]): string =>
    all
      .toSorted((one, other) => other.ms - one.ms)
      .slice(0, shownAtEnd)
      .map(({ name, ms }) => `${name} ${(ms / 1000).toFixed(0)} s`)
      .join(', ');
  console.log(`The longest: ${most(ends.map(({ file, ms }) => ({ name: file, ms })))}`);
  if (computed.length > 0) console.log(`The most CPU time: ${most(computed)}`);
}
